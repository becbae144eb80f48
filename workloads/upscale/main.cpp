// SPDX-License-Identifier: Apache-2.0
// ullage-upscale, the plain program. `ullage run upscale` starts it under a budget.

#include "torch_program/program_main.h"
#include "ullage/runtime/runtime.h"
#include "upscale/options.h"
#include "upscale/upscale_run.h"

int main(int argc, char** argv) {
  using namespace ullage;
  return torch_program::program_main(upscale::parse_options(argc, argv, runtime::rehearsing()), upscale::run_upscale);
}
