// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which names a checkpoint may not even mention. Nothing that a file names is ever called here, so that the rule guards
// nothing in this program: it tells a person that the file is an attack on those who give it to Python.

#include <string_view>

namespace ullage::read {

// True for names that run programs or reach for the machine when Python calls them:
//   - anything in a package that starts processes, opens files or sockets, imports or patches code: os, posix, nt,
//     subprocess, sys, shutil, runpy, importlib, socket, ctypes, pickle ... (the list is in pickle_globals.cpp);
//   - of builtins (Python 2: __builtin__) and io the functions eval, exec, compile, open, __import__ ...;
//   - a path through such a package: "torch.serialization" and "os.system" in one name.
// Everything else, known or not, is a class like any other: Lightning's callbacks, omegaconf's nodes, a program's own.
// `getattr` is such a name, too: a bound method among hyperparameters is written with it.
bool runs_programs(std::string_view module, std::string_view name);

}  // namespace ullage::read
