// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/step_facts.h"

#include <algorithm>

namespace ullage::plan {

StepFacts::StepFacts(const Step& step)
    : uses(step.values.size()),
      values_of(step.storages.size()),
      born_in_op(step.storages.size(), false),
      dies(step.storages.size(), UINT64_MAX),
      rerunnable(step.ops.size(), false),
      most(step.ops.size(), 0),
      step_(step) {
  find_uses();
  find_reruns();
  sum_levels();
}

std::size_t StepFacts::overwritten(const StepOp& op, std::size_t i) const {
  const StorageIndex storage = step_.values[op.makes[i].value].storage;
  for (const ValueIndex read : op.reads)
    if (step_.values[read.value].storage == storage) return read.value;
  ULLAGE_CHECK(false, "an op overwrites what is not among its arguments");
  return 0;
}

void StepFacts::find_uses() {
  for (std::size_t v = 0; v < step_.values.size(); ++v)
    if (step_.values[v].maker == kNone) values_of[step_.values[v].storage.value].push_back(v);
  for (std::size_t op = 0; op < step_.ops.size(); ++op) {
    const StepOp& it = step_.ops[op];
    for (std::size_t r = 0; r < it.reads.size(); ++r) {
      const std::size_t v = it.reads[r].value;
      const bool unread = std::find(it.unread.begin(), it.unread.end(), r) != it.unread.end();
      if (unread && step_.values[v].overwritten_by != OpIndex{op}) continue;
      if (uses[v].empty() || uses[v].back() != op) uses[v].push_back(op);
    }
    for (std::size_t i = 0; i < it.makes.size(); ++i) {
      const std::size_t v = it.makes[i].value;
      values_of[step_.values[v].storage.value].push_back(v);
      if (i >= it.overwrites) born_in_op[step_.values[v].storage.value] = true;
      uses[v].push_back(op);
    }
  }
  for (std::size_t gap = 0; gap < step_.gaps.size(); ++gap)
    for (const GapEvent& event : step_.gaps[gap])
      if (!event.born) dies[event.storage.value] = gap;
}

// An op in place is run again on a copy of what it overwrote, which has to be remade for it.
void StepFacts::find_reruns() {
  for (std::size_t op = 0; op < step_.ops.size(); ++op) {
    const StepOp& it = step_.ops[op];
    bool can = it.rerun.has_value();
    for (std::size_t i = 0; can && i < it.overwrites; ++i) {
      const Value& old = step_.values[overwritten(it, i)];
      can = old.maker != kNone && rerunnable[old.maker.value] && born_in_op[old.storage.value];
    }
    rerunnable[op] = can;
  }
}

void StepFacts::sum_levels() {
  std::int64_t level = static_cast<std::int64_t>(step_.level.count);
  const auto bytes = [this](StorageIndex s) { return static_cast<std::int64_t>(step_.storages[s.value].bytes.count); };
  for (std::size_t gap = 0; gap < step_.gaps.size(); ++gap) {
    std::int64_t top = level;
    for (const GapEvent& event : step_.gaps[gap]) {
      level += event.born ? bytes(event.storage) : -bytes(event.storage);
      top = std::max(top, level);
    }
    if (gap == step_.ops.size()) {
      most_at_end = top;
      break;
    }
    const StepOp& op = step_.ops[gap];
    std::int64_t born = 0;
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i)
      born += bytes(step_.values[op.makes[i].value].storage);
    for (const StorageIndex hidden : op.hides) born += bytes(hidden);
    most[gap] = std::max(top, level + std::max(static_cast<std::int64_t>(op.rise.count), born));
    level += born;
  }
}

}  // namespace ullage::plan
