// SPDX-License-Identifier: Apache-2.0
// ullage-pulse, the plain program. `ullage run pulse` starts it under a budget.

#include "pulse/options.h"
#include "pulse/search_run.h"
#include "torch_program/program_main.h"

int main(int argc, char** argv) {
  using namespace ullage;
  return torch_program::program_main(pulse::parse_options(argc, argv), pulse::run_pulse);
}
