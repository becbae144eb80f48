// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks whether a file has the weights that a program wants, and reports all differences at once.

#include "ullage/base/result.h"
#include "ullage/read/weights/weights.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct WantedWeight {
  std::string name;
  std::vector<std::int64_t> shape;
};

// Whether a file may have tensors that are not wanted. Lightning's checkpoints also hold losses and optimizers.
enum class ExtraWeights { Refused, Allowed };

// BadFile if keys are missing, have another shape or are extra. The message gives the number of each and the first ten.
// If keys are missing, up to 16 prefixes are tried. The message names the one under which all wanted keys are there, if
// there is one. Types are not compared.
Status match(const Weights& weights, std::span<const WantedWeight> wanted, ExtraWeights extra = ExtraWeights::Refused);
// The same; `may_be_extra` decides by name whether a tensor may be extra.
Status match(const Weights& weights, std::span<const WantedWeight> wanted,
             const std::function<bool(std::string_view)>& may_be_extra);

// Checks that all wanted tensors have a floating-point type of 16, 32 or 64 bits. BadFile names the first that has
// another type. Missing tensors are ignored.
Status match_floats(const Weights& weights, std::span<const WantedWeight> wanted);

// Says what an unknown file has: "its names begin with state_dict.model. (860), state_dict.cond_stage_model. (197)", at
// most eight, the most frequent ones first.
std::string beginnings_of(const Weights& weights);

}  // namespace ullage::read
