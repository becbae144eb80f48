// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which ways of having values again the levers allow, and where plain execution has too many bytes.

#include "ullage/plan/model/plan.h"
#include "ullage/plan/problem/step_facts.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

// All must outlive it.
struct RecomputeWays {
  const Step& step;
  const StepFacts& facts;
  const Levers& levers;

  bool recompute(OpIndex op) const { return levers.recompute && facts.recomputable[op]; }
  bool batch_norm(OpIndex op) const { return levers.batch_norm && step.ops[op].batch_norm.has_value(); }
  bool any(ValueIndex value) const {
    const OpIndex maker = step.values[value].maker;
    if (maker == kNone) return false;
    return recompute(maker) || (batch_norm(maker) && step.ops[maker].makes[0] == value);
  }
};

// Ops in which plain execution has more than so many bytes.
class HotOps final {
 public:
  HotOps(const StepFacts& facts, std::int64_t bytes) : before_(facts.most.size() + 1, 0) {
    for (const OpIndex op : facts.most.ids()) before_[op.next()] = before_[op] + (facts.most[op] > bytes ? 1 : 0);
  }
  bool any_before(OpIndex op) const { return before_[op] > 0; }
  // Both excluded.
  bool any_between(OpIndex after, OpIndex before) const {
    return before > after.next() && before_[before] > before_[after.next()];
  }

 private:
  Table<OpIndex, std::size_t> before_;  // of each op, and one behind the last, how many hot ones come before
};

}  // namespace ullage::plan
