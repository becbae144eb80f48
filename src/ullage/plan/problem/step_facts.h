// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can be read off a step without choosing anything: who uses what when, when storages come and go, which ops can
// really be run again.

#include "ullage/plan/model/step.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct StepFacts {
  explicit StepFacts(const Step& step);

  // Of each value the ops that make or need it, ascending. An op that looks at none of its bytes (`unread`) is no use,
  // unless it writes to its storage.
  Table<ValueIndex, std::vector<OpIndex>> uses;
  Table<StorageIndex, std::vector<ValueIndex>> values_of;  // as they follow one another
  Table<StorageIndex, bool> born_in_op;                    // an op of the step made it, and returned it
  Table<StorageIndex, GapIndex> dies;                      // in which the program frees it, or kNone
  Table<OpIndex, bool> recomputable;
  Table<OpIndex, std::int64_t> most;  // bytes present in each op and the gap before it, as things are
  std::int64_t most_at_end = 0;       // likewise in the last gap

  // The value that the i-th of what `op` makes overwrites.
  ValueIndex overwritten(const StepOp& op, std::size_t i) const;

 private:
  void find_uses();
  void find_recomputes();
  void sum_levels();

  const Step& step_;
};

}  // namespace ullage::plan
