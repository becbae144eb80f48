// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds what two sequences have in common.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ullage::predict {

// Returns a longest common subsequence: pairs of places in `a` and in `b`, ascending. Nothing if the two differ in more
// than `most` entries (entries of one that the other lacks). Takes time and memory for about the square of the number
// of differences. Source: E. Myers, An O(ND) Difference Algorithm and Its Variations, Algorithmica 1 (1986).
std::optional<std::vector<std::pair<std::size_t, std::size_t>>> longest_common(std::span<const std::uint64_t> a,
                                                                               std::span<const std::uint64_t> b,
                                                                               std::size_t most);

}  // namespace ullage::predict
