// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/ahead.h"

#include "ullage/plan/verify/verifier.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <optional>

namespace ullage::plan {
namespace {

using What = Action::What;

struct Moment {
  OpIndex at;
  bool after = false;  // true: after the op; false: before it
  friend auto operator<=>(const Moment&, const Moment&) = default;
};
Moment moment_of(const Action& action) { return {action.at, action.after}; }

class Ahead final {
 public:
  Ahead(const Step& step, const Schedule& schedule, Table<OpIndex, Bytes> levels, Bytes budget, const Rates& rates)
      : step_(step), schedule_(schedule), levels_(std::move(levels)), budget_(budget), rates_(rates) {
    ends_.reserve(step.ops.size());
    double now = 0;
    for (const StepOp& op : step.ops) ends_.push_back(now += op.took.count);
    dies_before_.assign(step.storages.size(), step.ops.next_id());
    for (const GapIndex gap : step.gaps.ids()) {
      for (const GapEvent& event : step.gaps[gap]) {
        if (!event.born) dies_before_[event.storage] = op_after(gap);
      }
    }
  }

  Schedule run() {
    std::vector<Action>& actions = schedule_.actions;
    const std::size_t planned = actions.size();
    for (std::size_t i = 0; i < planned; ++i) {
      if (actions[i].what == What::Spill) hide_write(i);
    }
    for (std::size_t i = planned; i-- > 0;) {
      if (actions[i].what == What::Restore) hide_read(i);
    }
    actions.insert(actions.end(), added_.begin(), added_.end());
    std::stable_sort(actions.begin(), actions.end(),
                     [](const Action& a, const Action& b) { return moment_of(a) < moment_of(b); });
    return std::move(schedule_);
  }

 private:
  bool concerns(const Action& action, ValueIndex value) const {
    if (action.what != What::Recompute && action.what != What::BatchNorm) return action.value == value;
    return std::find(action.keeps.begin(), action.keeps.end(), value) != action.keeps.end();
  }
  Bytes bytes_of(ValueIndex value) const { return step_.storages[step_.values[value].storage].bytes; }

  // If there is room for `bytes` more from "before" to "after" op `at`, takes it and returns true.
  bool take_room(OpIndex at, Bytes bytes) {
    if (levels_[at] + bytes > budget_) return false;
    levels_[at] += bytes;
    return true;
  }

  // The moment after which the value of this Spill no longer changes. Empty if the copy in the tier is still valid, so
  // that nothing is written.
  std::optional<Moment> unchanged_after(std::size_t spill) const {
    const ValueIndex value = schedule_.actions[spill].value;
    for (std::size_t i = spill; i-- > 0;) {
      const Action& before = schedule_.actions[i];
      if (!concerns(before, value)) continue;
      if (before.what == What::Restore || before.what == What::Spill) {
        const OpIndex maker = step_.values[value].maker;
        // The copy is still valid unless an op has made the value since then, by writing to the storage in place.
        if (maker == kNone || Moment{maker, true} < moment_of(before)) return std::nullopt;
        break;
      }
      if (before.what == What::Recompute || before.what == What::BatchNorm) return moment_of(before);
    }
    const OpIndex maker = step_.values[value].maker;
    if (maker == kNone) return std::nullopt;
    return Moment{maker, true};
  }

  // The last op after which the Spill may stand: before the next action on its value, and before its storage dies.
  OpIndex last_after(std::size_t spill) const {
    const ValueIndex value = schedule_.actions[spill].value;
    OpIndex last = dies_before_[step_.values[value].storage];
    for (std::size_t i = spill + 1; i < schedule_.actions.size(); ++i) {
      if (!concerns(schedule_.actions[i], value)) continue;
      last = std::min(last, schedule_.actions[i].at);
      break;
    }
    return last == OpIndex{0} ? last : last.previous();
  }

  void hide_write(std::size_t spill) {
    Action& action = schedule_.actions[spill];
    const std::optional<Moment> from = unchanged_after(spill);
    if (!from || *from > moment_of(action)) return;
    const Bytes bytes = bytes_of(action.value);
    const double begins = std::max(ends_[from->at], written_until_);
    written_until_ = begins + static_cast<double>(bytes.count) / rates_.write;
    const OpIndex last = last_after(spill);
    OpIndex at = action.after ? action.at.next() : action.at;  // the next op during which it would stay present
    Moment stays = moment_of(action);
    while (at <= last && ends_.has(at) && ends_[stays.at] < written_until_ && take_room(at, bytes)) {
      stays = {at, true};
      at = at.next();
    }
    if (stays == *from) return;
    action.at = stays.at;
    action.after = stays.after;
    added_.push_back({What::WriteAhead, from->at, from->after, action.value, kNone, {}});
  }

  void hide_read(std::size_t restore) {
    const Action& action = schedule_.actions[restore];
    const Bytes bytes = bytes_of(action.value);
    // The op after the one at which the value left.
    OpIndex first;
    for (std::size_t i = restore; i-- > 0;) {
      if (!concerns(schedule_.actions[i], action.value)) continue;
      first = schedule_.actions[i].at.next();
      break;
    }
    const OpIndex last = action.at;
    const auto begin_of = [&](OpIndex op) { return op == OpIndex{0} ? 0.0 : ends_[op.previous()]; };
    const double done = std::min(action.after ? ends_[last] : begin_of(last), read_from_);
    read_from_ = done - static_cast<double>(bytes.count) / rates_.read;
    OpIndex at = last;
    while (at > first && begin_of(at) > read_from_ && take_room(at.previous(), bytes)) at = at.previous();
    if (at == last) return;
    added_.push_back({What::ReadAhead, at, false, action.value, kNone, {}});
  }

  const Step& step_;
  Schedule schedule_;
  Table<OpIndex, Bytes> levels_;  // most bytes present from "before" to "after" each op
  const Bytes budget_;
  const Rates& rates_;
  Table<OpIndex, double> ends_;               // when each op ends, in seconds of ops since the step's begin
  Table<StorageIndex, OpIndex> dies_before_;  // the op after the gap in which it dies
  std::vector<Action> added_;
  double written_until_ = 0;  // when the background writes so far end; they go one after the other
  double read_from_ = 1e300;  // when the background reads so far begin; they are placed from the end of the step on
};

}  // namespace

Schedule with_copies_ahead(const Step& step, const Schedule& schedule, Bytes budget, const Rates& rates) {
  const Result<Verified> before = verify(step, schedule, budget);
  if (!before) return schedule;
  Schedule made = Ahead(step, schedule, before->levels, budget, rates).run();
  return verify(step, made, budget) ? made : schedule;
}

}  // namespace ullage::plan
