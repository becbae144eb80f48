// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds where the turns of a loop begin, such as the steps of a training, if neither annotations nor stacks show it.
// The loop is seen as a sequence of symbols. A symbol stands for something that comes again in every turn: the stack of
// an allocation, its size, or the name of an op.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ullage::trace {

// Returns the indices at which turns begin, in order, or nothing if there are fewer than three turns. `levels` has the
// live bytes at each symbol, so both spans have the same length. O(n log n).
//
// First it finds the period, the usual number of symbols in a turn. Two places of the sequence count as equal if the
// six symbols that begin there are the same: they have the same context. Of the contexts that come twice or more, at
// least 70 % must mostly come again one period later. So a loop inside the turns (the layers of a network) is not
// mistaken for them. Then it finds the border. Of the contexts that come about once a period, it is the one with the
// lowest average level, because memory is lowest between turns. The length of a turn may differ from the period by a
// quarter.
std::vector<std::size_t> find_turns(std::span<const std::uint64_t> symbols, std::span<const std::uint64_t> levels);

// Returns whether all turns begin at about the same level, and most hold something beyond it. Layers of a training pass
// do not begin level, because each leaves saved tensors behind. Layers that are made on the meta device hold nothing.
// The levels at which turns begin may differ by a quarter of this: the highest of all `levels` minus the lowest level
// at which a turn begins. `turns` is not empty.
bool begin_level(std::span<const std::uint64_t> levels, std::span<const std::size_t> turns);

}  // namespace ullage::trace
