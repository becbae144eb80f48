// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/emission.h"

#include <algorithm>

namespace ullage::plan {
namespace {

using What = Action::What;

class Emitter final {
 public:
  Emitter(const Problem& problem, const Choice& choice, const Record& record)
      : problem_(problem),
        choice_(choice),
        record_(record),
        before_(problem.step->ops.size()),
        after_(problem.step->ops.size()) {}

  Schedule emit() {
    sort_stays();
    for (const HappeningIndex i : record_.happenings.ids()) {
      bring(i);
      for (const Stay* stay : ends_[i]) end(*stay, i);
    }
    return flatten();
  }

 private:
  const Problem::Moved& value(MovedIndex v) const { return problem_.values[v]; }
  const Problem::Position& position(HappeningIndex happening) const {
    return problem_.positions[record_.happenings[happening].position];
  }
  bool is_end(HappeningIndex happening) const {
    return record_.happenings[happening].position.next() == problem_.positions.next_id();
  }
  // Returns the list that a happening's actions go into. For an op it is the list after that op. For a restore or a
  // recompute it is the list before the op that needs the value. At the end of the step it is the list after the last
  // op.
  std::vector<Action>& place(HappeningIndex happening) {
    if (is_end(happening)) return after_.back();
    const OpIndex op = position(happening).op;
    return record_.happenings[happening].what == Happening::What::Op ? after_[op] : before_[op];
  }

  // Sorts the stays by the happenings at which they begin and end. Leaves out recomputed values that nothing used.
  void sort_stays() {
    begins_.resize(record_.happenings.size());
    ends_.resize(record_.happenings.size());
    next_.assign(problem_.values.size(), {});
    for (const Stay& stay : record_.stays) {
      const bool by_program = stay.from == kNone || record_.happenings[stay.from].what == Happening::What::Op;
      if (stay.from != kNone && stay.to > stay.from) begins_[stay.from].push_back(stay.value);
      if (stay.from != kNone) next_[stay.value].push_back(stay.from);
      if (value(stay.value).pinned && stay.to <= stay.from) continue;
      if (stay.to > stay.from || (by_program && stay.to != kNone)) ends_[stay.to].push_back(&stay);
    }
    for (std::vector<HappeningIndex>& from : next_) std::sort(from.begin(), from.end());
  }

  void bring(HappeningIndex i) {
    const Happening& happening = record_.happenings[i];
    if (happening.what == Happening::What::Restore)
      place(i).push_back({.what = What::Restore, .value = value(happening.value).value});
    if (happening.what != Happening::What::Recompute) return;
    const Problem::Recipe& recipe = problem_.recipes[happening.recipe];
    Action action{.what = recipe.batch_norm ? What::BatchNorm : What::Recompute, .op = recipe.op};
    std::sort(begins_[i].begin(), begins_[i].end());
    for (const MovedIndex v : begins_[i]) action.keeps.push_back(value(v).value);
    place(i).push_back(std::move(action));
  }

  // Is the value restored from its copy when it comes back the next time?
  bool comes_back(const Stay& stay) const {
    const std::vector<HappeningIndex>& froms = next_[stay.value];
    const auto next = std::upper_bound(froms.begin(), froms.end(), std::max(stay.from, stay.to));
    return next != froms.end() && record_.happenings[*next].what == Happening::What::Restore;
  }

  void end(const Stay& stay, HappeningIndex i) {
    if (stay.end == Stay::End::Overwritten || record_.happenings[i].what == Happening::What::Static) return;
    const Problem::Moved& it = value(stay.value);
    const Value& in_step = problem_.step->values[it.value];
    const StepStorage& storage = problem_.step->storages[in_step.storage];
    const bool newest = in_step.overwritten_by == kNone;
    if (newest && storage.outlives) {
      if (is_end(i)) return;
      // A value that is away when the step ends ends its last stay with Spill. If earlier stays had no copy, they end
      // with Drop, and the value is recomputed.
      const bool spilled = comes_back(stay) || (stay.written && away(it, choice_));
      place(i).push_back({.what = spilled ? What::Spill : What::Drop, .value = it.value});
      return;
    }
    const OpIndex op = position(i).op;
    const GapIndex dies = problem_.dies[in_step.storage];
    const bool in_op = record_.happenings[i].what == Happening::What::Op;
    // Did the stay begin in the program's own storage, and does the program free that within the step?
    const bool began_there =
        newest && dies != kNone && (stay.from == kNone || gap_before(position(stay.from).op) < dies);
    const bool outlasts = began_there && gap_before(op) >= dies;
    if (outlasts) after_[op_before(dies)].push_back({.what = What::Hold, .value = it.value});
    const bool there = began_there && !outlasts;
    if (there && in_op && gap_after(op) == dies) return;  // the program frees it
    // While the program has the storage it may look at it, so a value with a copy is spilled, not dropped.
    const bool spilled = comes_back(stay) || (there && stay.written);
    place(i).push_back({.what = spilled ? What::Spill : What::Drop, .value = it.value});
  }

  Schedule flatten() {
    Schedule schedule;
    for (const OpIndex op : before_.ids())
      for (const bool after : {false, true})
        for (Action& action : after ? after_[op] : before_[op]) {
          action.at = op;
          action.after = after;
          schedule.actions.push_back(std::move(action));
        }
    for (const Problem::Moved& moved : problem_.values) {
      const Value& in_step = problem_.step->values[moved.value];
      const bool left = in_step.overwritten_by == kNone && problem_.step->storages[in_step.storage].outlives;
      if (left && away(moved, choice_)) schedule.away.push_back(moved.value);
    }
    return schedule;
  }

  const Problem& problem_;
  const Choice& choice_;
  const Record& record_;
  Table<OpIndex, std::vector<Action>> before_, after_;
  Table<HappeningIndex, std::vector<MovedIndex>> begins_;
  Table<HappeningIndex, std::vector<const Stay*>> ends_;
  Table<MovedIndex, std::vector<HappeningIndex>> next_;  // when its stays begin, ascending
};

}  // namespace

Schedule emit(const Problem& problem, const Choice& choice, const Record& record) {
  return Emitter(problem, choice, record).emit();
}

}  // namespace ullage::plan
