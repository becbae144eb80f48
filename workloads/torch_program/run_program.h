// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outermost part of a shipped program: turns whatever stops its work into a message and an exit code.

#include "program/progress.h"
#include "ullage/base/exit_code.h"
#include "ullage/base/result.h"

#include <functional>
#include <iosfwd>
#include <string>

namespace ullage::torch_program {

struct ProgramWords {
  std::string name;           // "ullage-dcgan", before every error
  std::string out_of_memory;  // advice printed after torch's own message
};

// Runs `work` and returns its exit code. An error is printed and becomes the exit code of its kind. Torch's
// out-of-memory error becomes Infeasible; any other exception, std::bad_alloc too, becomes Failed.
ExitCode run_program(const ProgramWords& words, program::Progress& progress,
                     const std::function<Result<ExitCode>()>& work);

// The same for a program that can rehearse: runs `work` unless `rehearse` returns true. Both get the Progress that
// writes to `out`. `terminal`: a person watches `out`.
ExitCode run_program(const ProgramWords& words, std::ostream& out, bool terminal,
                     const std::function<Result<bool>(program::Progress&)>& rehearse,
                     const std::function<Result<ExitCode>(program::Progress&)>& work);

}  // namespace ullage::torch_program
