// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ullage {

// How many seeds a random sweep takes: all of them, or a quarter under ULLAGE_FEW_SEEDS. The sanitizers' presets set it: an op
// costs eight times as much there, and the build without sanitizers takes all seeds of the same sweeps.
[[nodiscard]] inline std::uint64_t seeds(std::uint64_t all) {
  return std::getenv("ULLAGE_FEW_SEEDS") ? (all + 3) / 4 : all;
}

}  // namespace ullage
