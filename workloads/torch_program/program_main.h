// SPDX-License-Identifier: Apache-2.0
#pragma once

// The main() of a shipped program, behind the parsing of its options.

#include "program/answer.h"
#include "ullage/base/exit_code.h"
#include "ullage/runtime/ops/vector_math.h"

#include <unistd.h>

#include <iosfwd>
#include <iostream>
#include <variant>

namespace ullage::torch_program {

// Prints the answer if the command line asks for no work; otherwise runs the work, which says everything to stderr.
// Returns the exit code as a number.
template <class Options>
int program_main(const std::variant<Options, program::Answer>& parsed,
                 ExitCode (*run)(const Options& options, std::ostream& out, bool terminal)) {
  if (const auto* answer = std::get_if<program::Answer>(&parsed)) return program::print(*answer);
  runtime::prepare_vector_math();  // `ullage run` does so too, so results have the same bits
  return to_int(run(std::get<Options>(parsed), std::cerr, ::isatty(STDERR_FILENO) != 0));
}

}  // namespace ullage::torch_program
