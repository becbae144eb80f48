// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds where a sequence repeats itself: a loop whose borders nothing names. Symbols are what its turns have in
// common (the stack of an allocation, or its size).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

// Places of the sequence where its turns begin, in order; empty when fewer than three turns are found. A loop within
// the turns (the layers of a network) is not taken for them: the period must explain nearly every symbol. Among the
// places that come once a turn, turns begin where `levels` (as `symbols`, one for each) is lowest on average.
// O(n log n); a turn may differ a little from the one before.
std::vector<std::size_t> find_turns(std::span<const std::uint64_t> symbols, std::span<const std::uint64_t> levels);

// Do the turns begin at about the same level? The layers of a pass for training do not: each leaves something behind.
bool begin_level(std::span<const std::uint64_t> levels, std::span<const std::size_t> turns);

}  // namespace ullage::trace
