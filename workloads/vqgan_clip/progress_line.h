// SPDX-License-Identifier: Apache-2.0
#pragma once

// The progress line of a picture.

#include "program/progress.h"

#include <cstdint>
#include <span>
#include <string>

namespace ullage::vqgan_clip {

// Returns "iteration 12/300  loss 1.6512 (0.8301 0.8211)  1.85 GiB of 2.00 GiB  3 min 20 s left". The loss is the sum;
// its parts follow if there are several.
std::string progress_line(std::int64_t iteration, std::int64_t iterations, std::span<const double> losses,
                          const program::Pace& pace);

}  // namespace ullage::vqgan_clip
