// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which ways of having values again the levers allow, and where plain execution has too many bytes.

#include "ullage/plan/plan.h"
#include "ullage/plan/step_facts.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

// All must outlive it.
struct RemakingWays {
  const Step& step;
  const StepFacts& facts;
  const Levers& levers;

  bool rerun(std::size_t op) const { return levers.recompute && facts.rerunnable[op]; }
  bool apply(std::size_t op) const { return levers.batch_norm && step.ops[op].apply.has_value(); }
  bool any(std::size_t value) const {
    const OpIndex maker = step.values[value].maker;
    if (maker == kNone) return false;
    return rerun(maker.value) || (apply(maker.value) && step.ops[maker.value].makes[0].value == value);
  }
};

// Ops in which plain execution has more than so many bytes.
class HotOps final {
 public:
  HotOps(const StepFacts& facts, std::int64_t bytes) : before_(facts.most.size() + 1, 0) {
    for (std::size_t op = 0; op < facts.most.size(); ++op)
      before_[op + 1] = before_[op] + (facts.most[op] > bytes ? 1 : 0);
  }
  bool any_before(std::size_t op) const { return before_[op] > 0; }
  // Both excluded.
  bool any_between(std::size_t after, std::size_t before) const {
    return before > after + 1 && before_[before] > before_[after + 1];
  }

 private:
  std::vector<std::size_t> before_;
};

}  // namespace ullage::plan
