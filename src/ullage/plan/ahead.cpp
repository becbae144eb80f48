// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/ahead.h"

#include "ullage/plan/verifier.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace ullage::plan {
namespace {

using What = Action::What;

// Before op i is slot 2 i, after it slot 2 i + 1.
std::size_t slot_of(const Action& action) { return 2 * action.at.value + (action.after ? 1 : 0); }

class Ahead final {
 public:
  Ahead(const Step& step, const Schedule& schedule, std::vector<Bytes> levels, Bytes budget, const Rates& rates)
      : step_(step), schedule_(schedule), levels_(std::move(levels)), budget_(budget), rates_(rates) {
    ends_.reserve(step.ops.size());
    double now = 0;
    for (const StepOp& op : step.ops) ends_.push_back(now += op.took.count);
    dies_before_.assign(step.storages.size(), step.ops.size());
    for (std::size_t gap = 0; gap < step.gaps.size(); ++gap) {
      for (const GapEvent& event : step.gaps[gap]) {
        if (!event.born) dies_before_[event.storage.value] = gap;
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
                     [](const Action& a, const Action& b) { return slot_of(a) < slot_of(b); });
    return std::move(schedule_);
  }

 private:
  bool concerns(const Action& action, ValueIndex value) const {
    if (action.what != What::Rerun && action.what != What::Apply) return action.value == value;
    return std::find(action.keeps.begin(), action.keeps.end(), value) != action.keeps.end();
  }
  Bytes bytes_of(ValueIndex value) const { return step_.storages[step_.values[value.value].storage.value].bytes; }

  // Is there room for so many bytes more while op `at` runs, and around it? Then they are taken.
  bool take_room(std::size_t at, Bytes bytes) {
    if (levels_[at] + bytes > budget_) return false;
    levels_[at] += bytes;
    return true;
  }

  // The slot behind which the value of this Spill does not change any more; nothing: it needs no writing.
  std::optional<std::size_t> unchanged_after(std::size_t spill) const {
    const ValueIndex value = schedule_.actions[spill].value;
    for (std::size_t i = spill; i-- > 0;) {
      const Action& before = schedule_.actions[i];
      if (!concerns(before, value)) continue;
      if (before.what == What::Restore || before.what == What::Spill) {
        const OpIndex maker = step_.values[value.value].maker;
        // Restored and then made by an op: a storage that is written in place has a new value.
        if (maker == kNone || 2 * maker.value + 1 < slot_of(before)) return std::nullopt;
        break;
      }
      if (before.what == What::Rerun || before.what == What::Apply) return slot_of(before);
    }
    const OpIndex maker = step_.values[value.value].maker;
    if (maker == kNone) return std::nullopt;
    return 2 * maker.value + 1;
  }

  // The last op after which this value may still be there: before its next action, and before its storage dies.
  std::size_t last_after(std::size_t spill) const {
    const ValueIndex value = schedule_.actions[spill].value;
    std::size_t last = dies_before_[step_.values[value.value].storage.value];
    for (std::size_t i = spill + 1; i < schedule_.actions.size(); ++i) {
      if (!concerns(schedule_.actions[i], value)) continue;
      last = std::min<std::size_t>(last, schedule_.actions[i].at.value);
      break;
    }
    return last == 0 ? 0 : last - 1;
  }

  void hide_write(std::size_t spill) {
    Action& action = schedule_.actions[spill];
    const std::optional<std::size_t> from = unchanged_after(spill);
    if (!from || *from > slot_of(action)) return;
    const Bytes bytes = bytes_of(action.value);
    const double begins = std::max(ends_[*from / 2], written_until_);
    written_until_ = begins + static_cast<double>(bytes.count) / rates_.write;
    const std::size_t last = last_after(spill);
    std::size_t at = action.after ? action.at.value + 1 : action.at.value;  // the next op that it would be there for
    std::size_t stays = slot_of(action);
    while (at <= last && at < ends_.size() && ends_[stays / 2] < written_until_ && take_room(at, bytes)) {
      stays = 2 * at + 1;
      ++at;
    }
    if (stays == *from) return;
    action.at = OpIndex{stays / 2};
    action.after = stays % 2 == 1;
    added_.push_back({What::WriteAhead, OpIndex{*from / 2}, *from % 2 == 1, action.value, kNone, {}});
  }

  void hide_read(std::size_t restore) {
    const Action& action = schedule_.actions[restore];
    const Bytes bytes = bytes_of(action.value);
    // Behind the slot in which it went away.
    std::size_t first = 0;
    for (std::size_t i = restore; i-- > 0;) {
      if (!concerns(schedule_.actions[i], action.value)) continue;
      first = schedule_.actions[i].at.value + 1;
      break;
    }
    const std::size_t last = action.at.value;
    const auto begin_of = [&](std::size_t op) { return op == 0 ? 0.0 : ends_[op - 1]; };
    const double done = std::min(action.after ? ends_[last] : begin_of(last), read_from_);
    read_from_ = done - static_cast<double>(bytes.count) / rates_.read;
    std::size_t at = last;
    while (at > first && begin_of(at) > read_from_ && take_room(at - 1, bytes)) --at;
    if (at == last) return;
    added_.push_back({What::ReadAhead, OpIndex{at}, false, action.value, kNone, {}});
  }

  const Step& step_;
  Schedule schedule_;
  std::vector<Bytes> levels_;  // for each op the most present from its "before" to its "after"
  const Bytes budget_;
  const Rates& rates_;
  std::vector<double> ends_;              // seconds from the step's begin, in ops alone
  std::vector<std::size_t> dies_before_;  // index: storage; the gap
  std::vector<Action> added_;
  double written_until_ = 0;  // copies are written one after the other
  double read_from_ = 1e300;  // and read so, looked at from the end
};

}  // namespace

Schedule with_copies_ahead(const Step& step, const Schedule& schedule, Bytes budget, const Rates& rates) {
  const Result<Verified> before = verify(step, schedule, budget);
  if (!before) return schedule;
  Schedule made = Ahead(step, schedule, before->levels, budget, rates).run();
  return verify(step, made, budget) ? made : schedule;
}

}  // namespace ullage::plan
