// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which slots of a problem stand in the same place of blocks that repeat: a layer of one kind is best treated as the
// others of its kind are.

#include "ullage/plan/problem.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct Likeness {
  std::vector<std::int32_t> kind;                  // of each slot: index into `slots`
  std::vector<std::vector<std::int32_t>> slots{};  // of each kind, ascending
};
Likeness likeness_of(const Problem& problem);

}  // namespace ullage::plan
