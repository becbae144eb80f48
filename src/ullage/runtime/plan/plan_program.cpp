// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/plan_program.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace ullage::runtime {

using plan::Action;

namespace {

bool runs_again(const Action& action) {
  return action.what == Action::What::Recompute || action.what == Action::What::BatchNorm;
}

}  // namespace

PlanProgram::PlanProgram(plan::Sites sites, const plan::Plan& plan)
    : sites_(std::move(sites)),
      actions_(plan.schedule.actions),
      makers_(sites_.values, plan::kNone),
      loose_(sites_.values),
      taped_readers_(sites_.values),
      peak_(plan.peak),
      step_(plan.step),
      overhead_(plan.overhead),
      bound_(plan.bound.value_or(Seconds{})) {
  const auto slot = [](const Action& action) { return 2 * action.at.value + (action.after ? 1 : 0); };
  std::stable_sort(actions_.begin(), actions_.end(),
                   [&](const Action& a, const Action& b) { return slot(a) < slot(b); });
  leave_idle_ops_out();
  taped_.resize(sites_.ops.size());
  first_.resize(2 * sites_.ops.size() + 1);
  std::uint32_t next = 0;
  for (std::uint64_t i = 0; i < first_.size(); ++i) {
    while (next < actions_.size() && slot(actions_[next]) < i) ++next;
    first_[i] = next;
  }
  for (const plan::OpIndex i : sites_.ops.ids()) {
    for (const plan::ValueIndex value : sites_.ops[i].makes) makers_[value] = i;
  }
  for (const Action& action : actions_) {
    recomputes_ += runs_again(action);
    spills_ += action.what == Action::What::Spill;
    if (runs_again(action)) taped_[action.op] = true;
  }
  for (const plan::OpIndex i : sites_.ops.ids()) {
    if (!taped_[i]) continue;
    for (const plan::ValueIndex value : sites_.ops[i].reads) taped_readers_[value].push_back(i);
  }
  find_last();
  for (const plan::OpIndex i : sites_.ops.ids()) {
    if (!sites_.ops[i].reads.empty() && !sites_.ops[i].small) last_key_ = sites_.ops[i].key;
  }
}

// Returns for each value whether an op that is run again reads it.
Table<plan::ValueIndex, bool> PlanProgram::needed_again() const {
  Table<plan::ValueIndex, bool> needed(sites_.values);
  for (const Action& action : actions_) {
    if (!runs_again(action)) continue;
    const plan::Sites::Op& op = sites_.ops[action.op];
    for (const plan::ValueIndex value : op.reads) needed[value] = true;
    for (const plan::ValueIndex value : op.batch_norm_reads) needed[value] = true;
  }
  return needed;
}

// The actions of an op that touches nothing come right after the op before it, or before the first op that stays. A
// small op that has actions stays: the program may free something before or after it.
void PlanProgram::leave_idle_ops_out() {
  const Table<plan::ValueIndex, bool> needed = needed_again();
  const auto is_needed = [&](plan::ValueIndex value) { return needed[value]; };
  Table<plan::OpIndex, bool> acts(sites_.ops.size());
  for (const Action& action : actions_) acts[action.at] = true;
  const auto idle = [&](plan::OpIndex at) {
    const plan::Sites::Op& op = sites_.ops[at];
    if (op.reads.empty() && op.makes.empty()) return true;
    return op.small && !acts[at] && std::ranges::none_of(op.reads, is_needed) &&
           std::ranges::none_of(op.makes, is_needed);
  };
  if (std::ranges::all_of(sites_.ops.ids(), idle)) return;
  const Table<plan::OpIndex, bool> stays = not_told_apart(idle);
  Table<plan::OpIndex, plan::Sites::Op> busy;
  Table<plan::OpIndex, bool> was_idle(sites_.ops.size());
  Table<plan::OpIndex, plan::OpIndex> before(sites_.ops.size());  // how many busy ops are before each op
  for (const plan::OpIndex i : sites_.ops.ids()) {
    before[i] = busy.next_id();
    was_idle[i] = idle(i) && !stays[i];
    if (was_idle[i]) {
      for (const plan::ValueIndex value : sites_.ops[i].makes) loose_[value] = true;
    }
    if (!was_idle[i]) busy.push_back(std::move(sites_.ops[i]));
  }
  for (Action& action : actions_) {
    const plan::OpIndex place = before[action.at];
    const bool at_idle = was_idle[action.at];
    if (at_idle) action.after = place != plan::OpIndex{};
    action.at = at_idle && action.after ? place.previous() : place;
    if (action.op != plan::kNone) action.op = before[action.op];
  }
  sites_.ops = std::move(busy);
}

// Marks the idle ops that a run would take for the next op that stays: they have its key, and its inputs do not tell
// them apart. An input does so if an op that stays makes it, because a run knows where that one lies.
Table<plan::OpIndex, bool> PlanProgram::not_told_apart(const std::function<bool(plan::OpIndex)>& idle) const {
  Table<plan::ValueIndex, bool> known(sites_.values);
  for (const plan::OpIndex i : sites_.ops.ids()) {
    if (idle(i)) continue;
    for (const plan::ValueIndex value : sites_.ops[i].makes) known[value] = true;
  }
  Table<plan::OpIndex, bool> marked(sites_.ops.size());
  const plan::Sites::Op* next = nullptr;  // that stays
  for (std::uint64_t n = sites_.ops.size(); n-- > 0;) {
    const plan::OpIndex i{n};
    const plan::Sites::Op& op = sites_.ops[i];
    if (!idle(i)) {
      next = &op;
      continue;
    }
    if (next == nullptr || op.key != next->key || op.reads.size() != next->reads.size()) continue;
    if (op.reads.empty() && op.makes.empty()) continue;
    bool told_apart = false;
    for (std::size_t k = 0; k < op.reads.size(); ++k) {
      told_apart |= op.reads[k] != next->reads[k] && known[next->reads[k]];
    }
    marked[i] = !told_apart;
  }
  return marked;
}

void PlanProgram::find_last() {
  last_.assign(actions_.size(), false);
  Table<plan::ValueIndex, bool> made_later(sites_.values);
  for (std::size_t i = actions_.size(); i-- > 0;) {
    for (const plan::ValueIndex value : actions_[i].keeps) made_later[value] = true;
    if (actions_[i].what != Action::What::Drop) continue;
    last_[i] = !made_later[actions_[i].value];
    made_later[actions_[i].value] = false;
  }
}

void PlanProgram::read_everything() {
  for (plan::Sites::Op& op : sites_.ops) op.unread.clear();
}

void PlanProgram::run_batch_norms_again() {
  for (Action& action : actions_) {
    if (action.what == Action::What::BatchNorm) action.what = Action::What::Recompute;
  }
}

std::span<const Action> PlanProgram::at(plan::OpIndex op, bool after) const {
  const std::size_t slot = 2 * op.value + (after ? 1 : 0);
  return std::span(actions_).subspan(first_[slot], first_[slot + 1] - first_[slot]);
}

Result<std::shared_ptr<PlanProgram>> read_program(const std::string& file, const std::string& torch,
                                                  const std::string& device) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return Error{Error::Kind::NotFound, "cannot be opened", file};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  ULLAGE_TRY_VALUE(plan::PlanFile read, plan::read_plan(text, file));
  if (read.plan.outcome != plan::Plan::Outcome::Planned)
    return Error{Error::Kind::BadArgument,
                 "the plan has nothing to carry out: none was needed, or none was found; run without --plan", file};
  if (read.torch != torch) {
    return Error{Error::Kind::BadArgument,
                 "the plan was made with torch " + read.torch + ", this is torch " + torch + "; make a new one", file};
  }
  if (read.device != device) {
    return Error{
        Error::Kind::BadArgument,
        "the plan is for bytes on " + read.device + ", the budget is for bytes on " + device + "; make a new one",
        file};
  }
  return std::make_shared<PlanProgram>(std::move(read.sites), read.plan);
}

}  // namespace ullage::runtime
