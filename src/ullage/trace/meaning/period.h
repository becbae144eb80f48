// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the turns of a loop in a sequence of symbols, if neither annotations nor stacks show its borders. A symbol is
// something that is equal in every turn: the stack of an allocation, its size, or the name of an op.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

// Returns the indices at which turns begin, in order, or nothing if there are fewer than three turns. A loop inside the
// turns (the layers of a network) is not mistaken for them, because the period must explain most of the sequence. Of
// the places that come once per turn, turns begin at the one with the lowest average of `levels` (one for each symbol).
// O(n log n). A turn may differ a little from the one before.
std::vector<std::size_t> find_turns(std::span<const std::uint64_t> symbols, std::span<const std::uint64_t> levels);

// Whether all turns begin at about the same level. The layers of a training pass do not, since each leaves something
// behind. The levels may differ by up to a quarter of the rise from the lowest of them to the highest of all `levels`.
bool begin_level(std::span<const std::uint64_t> levels, std::span<const std::size_t> turns);

}  // namespace ullage::trace
