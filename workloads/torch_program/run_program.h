// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outermost part of a shipped program: whatever stops its work becomes words and an exit code.

#include "program/progress.h"
#include "ullage/base/exit_code.h"
#include "ullage/base/result.h"

#include <functional>
#include <string>

namespace ullage::torch_program {

struct ProgramWords {
  std::string name;           // "ullage-dcgan", before every error
  std::string out_of_memory;  // what a person may do then, said after torch's own message
};

// The exit code of `work`. Its error is said and becomes the code of that kind of error; lack of memory is Infeasible,
// any other exception Failed.
ExitCode run_program(const ProgramWords& words, program::Progress& progress,
                     const std::function<Result<ExitCode>()>& work);

}  // namespace ullage::torch_program
