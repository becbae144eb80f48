// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which recomputes the levers allow, and in which ops plain execution has too many bytes.

#include "ullage/plan/model/plan.h"
#include "ullage/plan/problem/step_facts.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

// The referenced objects must outlive it.
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

// Counts the hot ops: those in which plain execution has more than `bytes` present.
class HotOps final {
 public:
  HotOps(const StepFacts& facts, std::int64_t bytes) : before_(facts.most.size() + 1, 0) {
    for (const OpIndex op : facts.most.ids()) before_[op.next()] = before_[op] + (facts.most[op] > bytes ? 1 : 0);
  }
  bool any_before(OpIndex op) const { return before_[op] > 0; }
  // Excludes `after` and `before` themselves.
  bool any_between(OpIndex after, OpIndex before) const {
    return before > after.next() && before_[before] > before_[after.next()];
  }

 private:
  Table<OpIndex, std::size_t> before_;  // how many hot ops come before each op, and before the end
};

}  // namespace ullage::plan
