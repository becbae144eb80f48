// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the torch stands that a command will use: the stand-ins of a dry run are made for its shared objects.

#include "ullage/base/result.h"
#include "ullage/cli/launcher.h"

#include <filesystem>

namespace ullage::cli {

struct TorchFound {
  std::filesystem::path lib;     // its folder of shared objects
  std::filesystem::path python;  // the interpreter that was asked
  bool has_cuda = false;         // a CUDA build
};

// Of a Python, and of a script whose first line names one, that Python is asked where torch stands; it imports nothing.
// Of others, which may start a Python, the first `python3` on PATH is asked. NotFound: there is no torch.
Result<TorchFound> find_torch(const Launch& launch);

}  // namespace ullage::cli
