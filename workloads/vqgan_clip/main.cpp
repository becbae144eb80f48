// SPDX-License-Identifier: Apache-2.0
// ullage-vqgan-clip, the plain program. `ullage run vqgan-clip` starts it under a budget.

#include "ullage/runtime/ops/vector_math.h"
#include "vqgan_clip/options.h"
#include "vqgan_clip/paint_run.h"

#include <unistd.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace ullage;
  const auto parsed = vqgan_clip::parse_options(argc, argv);
  if (const auto* answer = std::get_if<program::Answer>(&parsed)) return program::print(*answer);
  runtime::prepare_vector_math();  // `ullage run` does so too, so results have the same bits
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  return to_int(vqgan_clip::run_vqgan_clip(std::get<vqgan_clip::Options>(parsed), std::cerr, terminal));
}
