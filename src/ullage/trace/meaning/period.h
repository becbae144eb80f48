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
// turns (the layers of a network) is not mistaken for them, because the period must explain most of the sequence. A
// turn begins where the memory is lowest. `levels` has the live bytes at each symbol. Places are compared by the
// symbols that follow them. Of those that come once per turn, the one with the lowest average level is chosen. O(n log
// n). A turn may differ a little from the one before.
std::vector<std::size_t> find_turns(std::span<const std::uint64_t> symbols, std::span<const std::uint64_t> levels);

// Whether all turns begin at about the same level. Layers of a training pass do not, because each leaves saved tensors
// behind. Let R be the highest of all `levels` less the lowest begin: the begins may differ by up to R / 4.
bool begin_level(std::span<const std::uint64_t> levels, std::span<const std::size_t> turns);

}  // namespace ullage::trace
