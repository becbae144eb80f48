// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mean and standard deviation of what the mapping network makes of N(0,1), before its last leaky ReLU: what latents are
// drawn from. leaky_relu with a slope of 5 undoes the last slope of 0.2.

#include "pulse/networks.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace ullage::pulse {

struct GaussianFit {
  at::Tensor mean, deviation;  // (512) each, the deviation unbiased
};

// Of `samples` latents drawn from seed 0, `chunk` at a time: the same draws, whatever the chunk, and sums in float64.
// Takes memory for some four chunks of latents. `go_on` is asked after each with the samples done; nothing where it
// said no.
std::optional<GaussianFit> fit_gaussian(const Mapping& mapping, std::int64_t samples, std::int64_t chunk,
                                        const std::function<bool(std::int64_t done)>& go_on);

}  // namespace ullage::pulse
