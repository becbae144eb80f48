// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mean and standard deviation of the mapping network's outputs for N(0,1), before its last leaky ReLU; latents are
// drawn from them. A leaky_relu with slope 5 undoes the last one, whose slope is 0.2.

#include "pulse/networks.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace ullage::pulse {

struct GaussianFit {
  at::Tensor mean, deviation;  // (512) each, the deviation unbiased
};

// Fits `samples` latents drawn from seed 0, `chunk` at a time. The draws are the same for every chunk size, and sums
// are in float64. Needs memory for about five chunks of latents in float32. Calls `go_on` after each chunk with the
// samples done; returns nothing if it returns false.
std::optional<GaussianFit> fit_gaussian(const Mapping& mapping, std::int64_t samples, std::int64_t chunk,
                                        const std::function<bool(std::int64_t done)>& go_on);

}  // namespace ullage::pulse
