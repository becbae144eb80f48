// SPDX-License-Identifier: Apache-2.0
// ullage-dcgan, the plain program. `ullage run dcgan` starts it under a budget.

#include "dcgan/options.h"
#include "dcgan/training_run.h"
#include "torch_program/program_main.h"
#include "ullage/runtime/runtime.h"

int main(int argc, char** argv) {
  using namespace ullage;
  return torch_program::program_main(dcgan::parse_options(argc, argv, runtime::rehearsing()), dcgan::run_dcgan);
}
