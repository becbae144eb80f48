// SPDX-License-Identifier: Apache-2.0
#pragma once

// Facts of a step that depend on no choice. They are which ops use a value, when storages are born and freed, and which
// ops can be recomputed under a plan.

#include "ullage/plan/model/step.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct StepFacts {
  explicit StepFacts(const Step& step);

  // The ops that make or need each value, ascending. An op for which it is `unread` does not need it, unless the op
  // overwrites it.
  Table<ValueIndex, std::vector<OpIndex>> uses;
  Table<StorageIndex, std::vector<ValueIndex>> values_of;  // in the order in which they follow one another
  Table<StorageIndex, bool> born_in_op;                    // an op of the step made it, and returned it
  Table<StorageIndex, GapIndex> dies;                      // the gap in which the program frees it, or kNone
  Table<OpIndex, bool> recomputable;  // has StepOp::recompute; what it overwrites can be recomputed too
  Table<OpIndex, std::int64_t> most;  // most bytes present in each op and the gap before it, in plain execution
  std::int64_t most_at_end = 0;       // most bytes present in the last gap, in plain execution

  // Does the storage live from step to step without an op of the step that uses it?
  bool idle(StorageIndex storage) const;
  // Returns the storage as which the next step finds `storage`, if a plan may leave it spilled from this step to the
  // next; else kNone. That is the storage itself, or StepStorage::becomes. For `becomes`, both must be movable. An op
  // of the step must have returned the first, and the next step must free the second, but not before its first op.
  StorageIndex carried_to(StorageIndex storage) const;
  // The first op that uses a storage from before the step. If none uses the value that it has then: the first op after
  // the program frees it, or one past the last op if it lives on.
  OpIndex first_wanted(StorageIndex storage) const;
  // The value that op.makes[i] overwrites; `i` is below op.overwrites.
  ValueIndex overwritten(const StepOp& op, std::size_t i) const;

 private:
  void find_uses();
  void find_recomputes();
  void sum_levels();

  const Step& step_;
};

}  // namespace ullage::plan
