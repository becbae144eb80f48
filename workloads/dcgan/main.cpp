// SPDX-License-Identifier: Apache-2.0
// ullage-dcgan, the plain program. `ullage run dcgan` starts it under a budget.

#include "dcgan/options.h"
#include "dcgan/training_run.h"
#include "ullage/runtime/ops/vector_math.h"
#include "ullage/runtime/runtime.h"

#include <unistd.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace ullage;
  const auto parsed = dcgan::parse_options(argc, argv, runtime::rehearsing());
  if (const auto* answer = std::get_if<program::Answer>(&parsed)) return program::print(*answer);
  runtime::prepare_vector_math();  // `ullage run` does so too, so results have the same bits
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  return to_int(dcgan::run_dcgan(std::get<dcgan::Options>(parsed), std::cerr, terminal));
}
