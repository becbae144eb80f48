// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/search.h"

#include <algorithm>

namespace ullage::plan {
namespace {

constexpr int kTries = 3;  // each aims lower by what the one before was over

// The positions between two uses of a value: from `from` up to, and without, `until`.
struct Gap {
  PositionIndex from{}, until{};
};

class Foresight final {
 public:
  Foresight(const Problem& problem, Timeline& timeline)
      : problem_(problem),
        timeline_(timeline),
        end_(problem.positions.next_id()),
        first_use_(problem.values.size(), end_),
        found_next_(problem.slots.size(), kNone) {
    for (const PositionIndex at : problem_.positions.ids()) {
      for (const MovedIndex v : problem_.lists[problem_.positions[at].reads])
        first_use_[v] = std::min(first_use_[v], at);
    }
    for (const MovedIndex v : problem_.values.ids()) {
      const Problem::Moved& value = problem_.values[v];
      if (value.from_before && value.carried_by != kNone) found_next_[value.carried_by] = v;
    }
    spilled_ = plain_choice(problem_);
    for (const SlotIndex i : problem_.slots.ids()) {
      if (!problem_.slots[i].spill) continue;
      spilled_.after[i] = After::Spill;
      slots_.push_back(i);
    }
    std::stable_sort(slots_.begin(), slots_.end(), [this](SlotIndex a, SlotIndex b) { return length(a) < length(b); });
  }

  bool can_spill() const { return !slots_.empty(); }

  // Keeps what fits within `target`. Not possible if spilling everything is not.
  Found within(std::int64_t target) {
    Choice choice = spilled_;
    Record record;
    Outcome outcome = timeline_.run(choice, target, record);
    if (!outcome.possible || outcome.peak > target) return {std::move(choice), outcome};
    Table<PositionIndex, std::int64_t> room(problem_.positions.size(), target);
    for (const Happening& happening : record.happenings)
      room[happening.position] = std::min(room[happening.position], target - happening.level);
    for (const SlotIndex slot : slots_) {
      const std::int64_t bytes = problem_.values[problem_.slots[slot].value].bytes;
      const auto fits = [&](const Gap& gap) {
        for (PositionIndex at = gap.from; at < gap.until; at = at.next())
          if (room[at] < bytes) return false;
        return true;
      };
      const std::vector<Gap> away = gaps(slot);
      if (!std::all_of(away.begin(), away.end(), fits)) continue;
      choice.after[slot] = After::Keep;
      for (const Gap& gap : away)
        for (PositionIndex at = gap.from; at < gap.until; at = at.next()) room[at] -= bytes;
    }
    outcome = timeline_.run(choice, target);
    return {std::move(choice), outcome};
  }

 private:
  // The positions while the slot's value is away: until its next use. If that is in the next step: from here to
  // the step's end, and from the next step's begin to that use.
  std::vector<Gap> gaps(SlotIndex i) const {
    const Problem::Slot& slot = problem_.slots[i];
    const MovedIndex next = found_next_[i];
    if (next == kNone) return {{slot.position.next(), slot.until}};
    return {{slot.position.next(), end_}, {{}, first_use_[next]}};
  }
  std::int32_t length(SlotIndex i) const {
    std::int32_t positions = 0;
    for (const Gap& gap : gaps(i)) positions += std::max(0, gap.until.value - gap.from.value);
    return positions;
  }

  const Problem& problem_;
  Timeline& timeline_;
  const PositionIndex end_;
  Table<MovedIndex, PositionIndex> first_use_;  // end_: none
  Table<SlotIndex, MovedIndex> found_next_;     // the value that the next step finds where this slot's was; or kNone
  Choice spilled_;                              // everything that may be spilled
  std::vector<SlotIndex> slots_;                // the slots that spilled_ spills, the soonest used again first
};

}  // namespace

std::vector<Found> foresight(const Problem& problem, Timeline& timeline, std::int64_t target) {
  Foresight search(problem, timeline);
  std::vector<Found> found;
  if (!search.can_spill()) return found;
  std::int64_t aim = target;
  for (int i = 0; i < kTries; ++i) {
    Found one = search.within(aim);
    if (!one.outcome.possible) break;
    const std::int64_t over = one.outcome.peak - target;
    found.push_back(std::move(one));
    if (over <= 0) break;
    aim -= over;
  }
  return found;
}

}  // namespace ullage::plan
