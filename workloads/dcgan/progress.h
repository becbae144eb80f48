// SPDX-License-Identifier: Apache-2.0
#pragma once

// The progress line of a training run.

#include "dcgan/run_folder.h"
#include "program/progress.h"

#include <cstdint>
#include <string>

namespace ullage::dcgan {

struct ProgressState {
  std::uint64_t step = 0;
  std::uint64_t last_step = 0;  // an estimate if --epochs decides
  Losses losses;
  program::Pace pace;
};

// "step 12/100  D 0.5312  G 3.2101  1.85 GiB of 2.00 GiB  3 min 20 s left"
std::string progress_line(const ProgressState& state);

}  // namespace ullage::dcgan
