// SPDX-License-Identifier: Apache-2.0
#pragma once

// The outcome of a command line that asks for no work.

#include "ullage/base/exit_code.h"

#include <string>

namespace ullage::program {

// Text to print: help, or what was wrong.
struct Answer {
  ExitCode code = ExitCode::Done;
  std::string text;
};

// Prints help to stdout and errors to stderr. Returns the exit code as a number.
int print(const Answer& answer);

}  // namespace ullage::program
