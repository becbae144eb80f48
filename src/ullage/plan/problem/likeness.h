// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which slots of a problem stand in the same place of blocks that repeat: a layer of one kind is best treated as the
// others of its kind are.

#include "ullage/plan/problem/problem.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

using KindIndex = Id<struct KindTag, std::int32_t>;  // index into Likeness::slots

struct Likeness {
  Table<SlotIndex, KindIndex> kind;
  Table<KindIndex, std::vector<SlotIndex>> slots{};  // ascending
};
Likeness likeness_of(const Problem& problem);

}  // namespace ullage::plan
