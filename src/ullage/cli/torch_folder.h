// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the torch that a command will use. A dry run makes its stand-ins for the shared objects of that torch. Edit
// this if the Python of some kind of command is not found.

#include "ullage/base/result.h"
#include "ullage/cli/launcher.h"

#include <filesystem>
#include <vector>

namespace ullage::cli {

struct TorchFound {
  std::filesystem::path lib;     // its folder of shared objects
  std::filesystem::path python;  // the interpreter that was asked
  bool has_cuda = false;         // it is a CUDA build
  // Folders of packages on the interpreter's search path, without symbolic links. Empty if none was found.
  std::vector<std::filesystem::path> packages{};
};

// Asks a Python interpreter where torch is; nothing is imported for that. If the command is a Python, or a script whose
// first line names one, asks that one. Else asks a Python that the command's words name ("nice python3 train.py").
// Otherwise asks the first `python3` on PATH, because the command may start a Python. NotFound if there is no Python,
// it has no torch, or the torch has no libtorch_cpu.so.
Result<TorchFound> find_torch(const Launch& launch);

}  // namespace ullage::cli
