// SPDX-License-Identifier: Apache-2.0
// ullage-pulse, the plain program. `ullage run pulse` starts it under a budget.

#include "pulse/options.h"
#include "pulse/search_run.h"
#include "ullage/runtime/ops/vector_math.h"

#include <unistd.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace ullage;
  const auto parsed = pulse::parse_options(argc, argv);
  if (const auto* answer = std::get_if<program::Answer>(&parsed)) return program::print(*answer);
  runtime::prepare_vector_math();  // `ullage run` does so too, so results have the same bits
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  return to_int(pulse::run_pulse(std::get<pulse::Options>(parsed), std::cerr, terminal));
}
