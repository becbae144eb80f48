// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the slots that have the same place in repeated blocks of a model. The search often treats them alike, because
// what is good for one layer is mostly good for the others of its kind.

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
