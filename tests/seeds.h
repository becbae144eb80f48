// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ullage {

// How many seeds a random sweep takes: all of them, or a quarter if ULLAGE_FEW_SEEDS is set. The preset asan sets it,
// since a test takes up to eight times as long there. `make test` runs the same sweeps with all seeds. Counts that a
// sweep must reach scale with it.
[[nodiscard]] inline std::uint64_t seeds(std::uint64_t all) {
  return std::getenv("ULLAGE_FEW_SEEDS") ? (all + 3) / 4 : all;
}

}  // namespace ullage
