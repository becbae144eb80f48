// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names that a checkpoint may not even mention. This program never calls what a file names, so it needs no such
// guard. The rule warns a person: the file attacks whoever gives it to Python.

#include <string_view>

namespace ullage::read {

// True for names that run programs or reach for the machine when Python calls them:
//   - anything in a package that starts processes, opens files or sockets, imports or patches code: os, posix, nt,
//     subprocess, sys, shutil, runpy, importlib, socket, ctypes, pickle ... (the list is in pickle_globals.cpp);
//   - of builtins (Python 2: __builtin__) and io the functions eval, exec, compile, open, __import__ ...;
//   - a name with such a package in its path: "os.system" in module "torch.serialization".
// Any other name is accepted, known or not: Lightning's callbacks, omegaconf's nodes, a program's own classes.
// `getattr` is accepted, too, because a bound method among hyperparameters is written with it.
bool runs_programs(std::string_view module, std::string_view name);

}  // namespace ullage::read
