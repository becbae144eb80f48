// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/moved_storages.h"

#include <utility>

namespace ullage::plan {
namespace {

class Chooser final {
 public:
  Chooser(const RecomputeWays& ways, const HotOps& hot)
      : step_(ways.step),
        facts_(ways.facts),
        levers_(ways.levers),
        ways_(ways),
        hot_(hot),
        moved_(step_.storages.size(), false) {}

  Table<StorageIndex, bool> choose();

 private:
  bool worth_moving(ValueIndex v) const;
  bool worth_sending_away(StorageIndex s) const;
  bool worth_leaving_away(StorageIndex s) const;
  void move_storage(StorageIndex s, std::vector<StorageIndex>& todo);
  void move_inputs(const std::vector<ValueIndex>& reads, std::vector<StorageIndex>& todo);
  void move_outputs(const StepOp& op, std::vector<StorageIndex>& todo);

  const Step& step_;
  const StepFacts& facts_;
  const Levers& levers_;
  const RecomputeWays& ways_;
  const HotOps& hot_;
  Table<StorageIndex, bool> moved_;
};

bool Chooser::worth_moving(ValueIndex v) const {
  const Value& value = step_.values[v];
  const StepStorage& storage = step_.storages[value.storage];
  if (!storage.movable || !facts_.born_in_op[value.storage]) return false;
  if (!ways_.any(v) && !levers_.spill) return false;
  const std::vector<OpIndex>& uses = facts_.uses[v];
  for (std::size_t i = 0; i + 1 < uses.size(); ++i)
    if (hot_.any_between(uses[i], uses[i + 1])) return true;
  const GapIndex dies = facts_.dies[value.storage];
  const bool newest = value.overwritten_by == kNone;
  if (levers_.spill && dies != kNone && newest && !uses.empty() && hot_.any_between(uses.back(), op_after(dies)))
    return true;
  return storage.outlives && newest && !uses.empty() && hot_.any_between(uses.back(), step_.ops.next_id());
}

// Could a storage that lives from step to step be spilled over a hot op? Either between two of its uses, or from its
// last use to its first one in the next step. One that no op uses could be away all the time.
bool Chooser::worth_sending_away(StorageIndex s) const {
  const StepStorage& storage = step_.storages[s];
  if (!levers_.state || !storage.movable || !storage.from_before || facts_.carried_to(s) != s) return false;
  if (facts_.idle(s)) return hot_.any_before(step_.ops.next_id());
  if (facts_.values_of[s].empty() || facts_.uses[facts_.values_of[s].front()].empty()) return false;
  OpIndex before;
  bool first = true;
  for (const ValueIndex v : facts_.values_of[s])
    for (const OpIndex use : facts_.uses[v]) {
      if (first ? hot_.any_before(use) : hot_.any_between(before, use)) return true;
      first = false;
      before = use;
    }
  return !first && hot_.any_between(before, step_.ops.next_id());
}

// Could a storage that the step makes and leaves be spilled over a hot op of the next step? That op must come before
// the next step uses the storage or frees it.
bool Chooser::worth_leaving_away(StorageIndex s) const {
  const StorageIndex next = facts_.carried_to(s);
  return next != kNone && next != s && levers_.spill && hot_.any_before(facts_.first_wanted(next));
}

void Chooser::move_storage(StorageIndex s, std::vector<StorageIndex>& todo) {
  if (moved_[s]) return;
  moved_[s] = true;
  todo.push_back(s);
  if (const StorageIndex next = facts_.carried_to(s); next != kNone) move_storage(next, todo);
  if (const StorageIndex was = step_.storages[s].was; was != kNone && facts_.carried_to(was) == s)
    move_storage(was, todo);
}

Table<StorageIndex, bool> Chooser::choose() {
  std::vector<StorageIndex> todo;
  for (const ValueIndex v : step_.values.ids())
    if (worth_moving(v)) move_storage(step_.values[v].storage, todo);
  for (const StorageIndex s : step_.storages.ids())
    if (worth_sending_away(s) || worth_leaving_away(s)) move_storage(s, todo);
  // The values that a recompute reads may have to be held, or be recomputed first.
  while (!todo.empty()) {
    const StorageIndex s = todo.back();
    todo.pop_back();
    for (const ValueIndex v : facts_.values_of[s]) {
      const OpIndex maker = step_.values[v].maker;
      if (maker == kNone || !ways_.any(v)) continue;
      const StepOp& op = step_.ops[maker];
      if (ways_.recompute(maker)) move_inputs(op.recompute->reads, todo), move_outputs(op, todo);
      if (ways_.batch_norm(maker)) move_inputs(op.batch_norm->reads, todo);
    }
  }
  return std::move(moved_);
}

void Chooser::move_inputs(const std::vector<ValueIndex>& reads, std::vector<StorageIndex>& todo) {
  for (const ValueIndex read : reads) {
    const StorageIndex s = step_.values[read].storage;
    if (facts_.born_in_op[s]) move_storage(s, todo);
  }
}

// An op that is recomputed makes all its results, and the others may be needed too.
void Chooser::move_outputs(const StepOp& op, std::vector<StorageIndex>& todo) {
  for (const ValueIndex make : op.makes)
    if (facts_.born_in_op[step_.values[make].storage]) move_storage(step_.values[make].storage, todo);
}

}  // namespace

Table<StorageIndex, bool> moved_storages(const RecomputeWays& ways, const HotOps& hot) {
  return Chooser(ways, hot).choose();
}

}  // namespace ullage::plan
