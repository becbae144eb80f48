// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/moved_storages.h"

#include <utility>

namespace ullage::plan {
namespace {

class Chooser final {
 public:
  Chooser(const RemakingWays& ways, const HotOps& hot)
      : step_(ways.step),
        facts_(ways.facts),
        levers_(ways.levers),
        ways_(ways),
        hot_(hot),
        moved_(step_.storages.size(), false) {}

  std::vector<bool> choose();

 private:
  bool worth_moving(std::size_t v) const;
  bool worth_sending_away(std::size_t s) const;
  void move_storage(std::size_t s, std::vector<std::size_t>& todo);
  void move_inputs(const std::vector<ValueIndex>& reads, std::vector<std::size_t>& todo);
  void move_outputs(const StepOp& op, std::vector<std::size_t>& todo);

  const Step& step_;
  const StepFacts& facts_;
  const Levers& levers_;
  const RemakingWays& ways_;
  const HotOps& hot_;
  std::vector<bool> moved_;
};

bool Chooser::worth_moving(std::size_t v) const {
  const Value& value = step_.values[v];
  const StepStorage& storage = step_.storages[value.storage.value];
  if (!storage.movable || !facts_.born_in_op[value.storage.value]) return false;
  if (!ways_.any(v) && !levers_.spill) return false;
  const std::vector<std::size_t>& uses = facts_.uses[v];
  for (std::size_t i = 0; i + 1 < uses.size(); ++i)
    if (hot_.any_between(uses[i], uses[i + 1])) return true;
  const std::uint64_t dies = facts_.dies[value.storage.value];
  const bool newest = value.overwritten_by == kNone;
  if (levers_.spill && dies <= step_.ops.size() && newest && !uses.empty() && hot_.any_between(uses.back(), dies))
    return true;
  return storage.outlives && newest && !uses.empty() && hot_.any_between(uses.back(), step_.ops.size());
}

// What lives from step to step and is away between two uses, or from the last one to the first of the next step.
bool Chooser::worth_sending_away(std::size_t s) const {
  const StepStorage& storage = step_.storages[s];
  if (!levers_.state || !storage.movable || !storage.from_before || !storage.outlives) return false;
  if (facts_.values_of[s].empty() || facts_.uses[facts_.values_of[s].front()].empty()) return false;
  std::size_t before = 0;
  bool first = true;
  for (const std::size_t v : facts_.values_of[s])
    for (const std::size_t use : facts_.uses[v]) {
      if (first ? hot_.any_before(use) : hot_.any_between(before, use)) return true;
      first = false;
      before = use;
    }
  return !first && hot_.any_between(before, step_.ops.size());
}

void Chooser::move_storage(std::size_t s, std::vector<std::size_t>& todo) {
  if (moved_[s]) return;
  moved_[s] = true;
  todo.push_back(s);
}

std::vector<bool> Chooser::choose() {
  std::vector<std::size_t> todo;
  for (std::size_t v = 0; v < step_.values.size(); ++v)
    if (worth_moving(v)) move_storage(step_.values[v].storage.value, todo);
  for (std::size_t s = 0; s < step_.storages.size(); ++s)
    if (worth_sending_away(s)) move_storage(s, todo);
  // What chains read may be held, or made again in turn.
  while (!todo.empty()) {
    const std::size_t s = todo.back();
    todo.pop_back();
    for (const std::size_t v : facts_.values_of[s]) {
      const OpIndex maker = step_.values[v].maker;
      if (maker == kNone || !ways_.any(v)) continue;
      const StepOp& op = step_.ops[maker.value];
      if (ways_.rerun(maker.value)) move_inputs(op.rerun->reads, todo), move_outputs(op, todo);
      if (ways_.apply(maker.value)) move_inputs(op.apply->reads, todo);
    }
  }
  return std::move(moved_);
}

void Chooser::move_inputs(const std::vector<ValueIndex>& reads, std::vector<std::size_t>& todo) {
  for (const ValueIndex read : reads) {
    const std::size_t s = step_.values[read.value].storage.value;
    if (facts_.born_in_op[s]) move_storage(s, todo);
  }
}

// All results of an op that is run again are looked at: the others of them may be wanted too.
void Chooser::move_outputs(const StepOp& op, std::vector<std::size_t>& todo) {
  for (const ValueIndex make : op.makes)
    if (facts_.born_in_op[step_.values[make.value].storage.value])
      move_storage(step_.values[make.value].storage.value, todo);
}

}  // namespace

std::vector<bool> moved_storages(const RemakingWays& ways, const HotOps& hot) { return Chooser(ways, hot).choose(); }

}  // namespace ullage::plan
