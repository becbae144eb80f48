// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/step_facts.h"

#include <algorithm>

namespace ullage::plan {

StepFacts::StepFacts(const Step& step)
    : uses(step.values.size()),
      values_of(step.storages.size()),
      born_in_op(step.storages.size(), false),
      dies(step.storages.size(), kNone),
      recomputable(step.ops.size(), false),
      most(step.ops.size(), 0),
      step_(step) {
  find_uses();
  find_recomputes();
  sum_levels();
}

ValueIndex StepFacts::overwritten(const StepOp& op, std::size_t i) const {
  const StorageIndex storage = step_.values[op.makes[i]].storage;
  for (const ValueIndex read : op.reads)
    if (step_.values[read].storage == storage) return read;
  ULLAGE_CHECK(false, "an op overwrites what is not among its arguments");
  return {};
}

bool StepFacts::idle(StorageIndex s) const {
  const StepStorage& storage = step_.storages[s];
  const auto unused = [this](ValueIndex v) { return uses[v].empty(); };
  return storage.from_before && carried_to(s) == s && !values_of[s].empty() &&
         std::ranges::all_of(values_of[s], unused);
}

StorageIndex StepFacts::carried_to(StorageIndex s) const {
  const StorageIndex next = step_.in_next_step(s);
  if (next == s || next == kNone) return next;
  const StepStorage &one = step_.storages[s], &later = step_.storages[next];
  const bool once = !one.from_before && !later.outlives && dies[next] != GapIndex{0};
  return once && born_in_op[s] && one.movable && later.movable ? next : kNone;
}

OpIndex StepFacts::first_wanted(StorageIndex s) const {
  if (!values_of[s].empty() && !uses[values_of[s].front()].empty()) return uses[values_of[s].front()].front();
  return dies[s] == kNone ? step_.ops.next_id() : op_after(dies[s]);
}

void StepFacts::find_uses() {
  for (const ValueIndex v : step_.values.ids())
    if (step_.values[v].maker == kNone) values_of[step_.values[v].storage].push_back(v);
  for (const OpIndex op : step_.ops.ids()) {
    const StepOp& it = step_.ops[op];
    for (std::size_t r = 0; r < it.reads.size(); ++r) {
      const ValueIndex v = it.reads[r];
      const bool unread = std::find(it.unread.begin(), it.unread.end(), r) != it.unread.end();
      if (unread && step_.values[v].overwritten_by != op) continue;
      if (uses[v].empty() || uses[v].back() != op) uses[v].push_back(op);
    }
    for (std::size_t i = 0; i < it.makes.size(); ++i) {
      const ValueIndex v = it.makes[i];
      values_of[step_.values[v].storage].push_back(v);
      if (i >= it.overwrites) born_in_op[step_.values[v].storage] = true;
      uses[v].push_back(op);
    }
  }
  for (const GapIndex gap : step_.gaps.ids())
    for (const GapEvent& event : step_.gaps[gap])
      if (!event.born) dies[event.storage] = gap;
}

// An op in place is recomputed on a copy of what it overwrote. That copy must be recomputable too, in a storage that an
// op of the step made.
void StepFacts::find_recomputes() {
  for (const OpIndex op : step_.ops.ids()) {
    const StepOp& it = step_.ops[op];
    bool can = it.recompute.has_value();
    for (std::size_t i = 0; can && i < it.overwrites; ++i) {
      const Value& old = step_.values[overwritten(it, i)];
      can = old.maker != kNone && recomputable[old.maker] && born_in_op[old.storage];
    }
    recomputable[op] = can;
  }
}

void StepFacts::sum_levels() {
  std::int64_t level = static_cast<std::int64_t>(step_.level.count);
  const auto bytes = [this](StorageIndex s) { return static_cast<std::int64_t>(step_.storages[s].bytes.count); };
  for (const GapIndex gap : step_.gaps.ids()) {
    std::int64_t top = level;
    for (const GapEvent& event : step_.gaps[gap]) {
      level += event.born ? bytes(event.storage) : -bytes(event.storage);
      top = std::max(top, level);
    }
    if (!step_.ops.has(op_after(gap))) {
      most_at_end = top;
      break;
    }
    const StepOp& op = step_.ops[op_after(gap)];
    std::int64_t born = 0;
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) born += bytes(step_.values[op.makes[i]].storage);
    for (const StorageIndex hidden : op.hides) born += bytes(hidden);
    most[op_after(gap)] = std::max(top, level + std::max(static_cast<std::int64_t>(op.rise.count), born));
    level += born;
  }
}

}  // namespace ullage::plan
