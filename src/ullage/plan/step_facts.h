// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can be read off a step without choosing anything: who uses what when, when storages come and go, which ops can
// really be run again.

#include "ullage/plan/step.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct StepFacts {
  explicit StepFacts(const Step& step);

  // Of each value the ops that make or need it, ascending. An op that looks at none of its bytes (`unread`) is no use,
  // unless it writes to its storage.
  std::vector<std::vector<std::size_t>> uses;
  std::vector<std::vector<std::size_t>> values_of;  // of each storage, as they follow one another
  std::vector<bool> born_in_op;                     // of each storage: an op of the step made it, and returned it
  std::vector<std::uint64_t> dies;                  // the gap in which the program frees it, or UINT64_MAX
  std::vector<bool> rerunnable;                     // of each op
  std::vector<std::int64_t> most;                   // bytes present in each op and the gap before it, as things are
  std::int64_t most_at_end = 0;                     // likewise in the last gap

  // The value that the i-th of what `op` makes overwrites.
  std::size_t overwritten(const StepOp& op, std::size_t i) const;

 private:
  void find_uses();
  void find_reruns();
  void sum_levels();

  const Step& step_;
};

}  // namespace ullage::plan
