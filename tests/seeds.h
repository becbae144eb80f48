// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ullage {

// Returns how many seeds or operations a random sweep uses: all of them, or a quarter if ULLAGE_FEW_SEEDS is set. The
// preset asan sets it, because a test takes up to eight times as long there, and so does store.kernel_modes, which runs
// the same tests four times. `make test` runs the same sweeps with all seeds. A test that expects some count from a
// sweep must scale that count with it.
[[nodiscard]] inline std::uint64_t seeds(std::uint64_t all) {
  return std::getenv("ULLAGE_FEW_SEEDS") ? (all + 3) / 4 : all;
}

}  // namespace ullage
