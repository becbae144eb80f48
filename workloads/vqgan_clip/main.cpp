// SPDX-License-Identifier: Apache-2.0
// ullage-vqgan-clip, the plain program. `ullage run vqgan-clip` starts it under a budget.

#include "torch_program/program_main.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/paint_run.h"

int main(int argc, char** argv) {
  using namespace ullage;
  return torch_program::program_main(vqgan_clip::parse_options(argc, argv), vqgan_clip::run_vqgan_clip);
}
