// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a file has the weights that a program wants, said of all of them at once.

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

// What a file has and nobody wants: Lightning's checkpoints hold losses and optimizers besides.
enum class ExtraWeights { Refused, Allowed };

// BadFile naming the keys that are missing, those that have another shape, and those that are extra, the first ten of
// each with their counts; and the prefix under which all wanted keys are there, if there is one. Types are not
// compared.
Status match(const Weights& weights, std::span<const WantedWeight> wanted, ExtraWeights extra = ExtraWeights::Refused);
// The same where the name says whether it may be there besides.
Status match(const Weights& weights, std::span<const WantedWeight> wanted,
             const std::function<bool(std::string_view)>& may_be_extra);

// Whether all that is wanted, and there, are figures of 16, 32 or 64 bits to compute with. BadFile names the first that
// is not.
Status match_floats(const Weights& weights, std::span<const WantedWeight> wanted);

}  // namespace ullage::read
