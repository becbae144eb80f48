// SPDX-License-Identifier: Apache-2.0
#pragma once

// The line that says how far a picture is.

#include "program/progress.h"

#include <cstdint>
#include <span>
#include <string>

namespace ullage::vqgan_clip {

// "iteration 12/300  loss 1.6512 (0.8301 0.8211)  1.85 GiB of 2.00 GiB  3 min 20 s left": the sum, and where there are
// several their parts.
std::string progress_line(std::int64_t iteration, std::int64_t iterations, std::span<const double> losses,
                          const program::Pace& pace);

}  // namespace ullage::vqgan_clip
