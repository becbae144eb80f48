// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a command line comes to that names no work.

#include "ullage/base/exit_code.h"

#include <string>

namespace ullage::program {

// Nothing to do but print: help, or what was wrong.
struct Answer {
  ExitCode code = ExitCode::Done;
  std::string text;
};

// Help to stdout, what was wrong to stderr. The exit code as a number.
int print(const Answer& answer);

}  // namespace ullage::program
