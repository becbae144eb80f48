// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/problem_builder.h"

#include <algorithm>

namespace ullage::plan {

// Sums the levels of the storages that are not moved. Of these it gives the highest in each gap, the level at the gap's
// end, and the highest while each op runs.
void ProblemBuilder::sum_static_levels() {
  gap_most_.assign(step_.gaps.size(), 0);
  left_.assign(step_.gaps.size(), 0);
  need_.assign(step_.ops.size(), 0);
  frees_.assign(step_.gaps.size(), {});
  frees_late_.assign(step_.gaps.size(), false);
  std::int64_t level = count(step_.level);
  // A moved storage that is not movable (pinned) counts here as long as the program has it.
  const auto counts = [this](StorageIndex s) { return !moved_[s] || !step_.storages[s].movable; };
  for (const StorageIndex s : step_.storages.ids())
    if (step_.storages[s].from_before && !counts(s)) level -= count(step_.storages[s].bytes);
  for (const GapIndex gap : step_.gaps.ids()) {
    gap_most_[gap] = level;
    bool born_before = false;
    for (const GapEvent& event : step_.gaps[gap]) {
      const StorageIndex s = event.storage;
      born_before = born_before || event.born;
      if (!event.born && moved_[s] && gap > GapIndex{0}) {
        if (born_before) frees_late_[gap] = true;
        for (const ValueIndex v : facts_.values_of[s])
          if (step_.values[v].overwritten_by == kNone) frees_[gap].push_back(number_[v]);
      }
      if (!counts(s)) continue;
      level += event.born ? count(step_.storages[s].bytes) : -count(step_.storages[s].bytes);
      gap_most_[gap] = std::max(gap_most_[gap], level);
    }
    left_[gap] = level;
    if (!step_.ops.has(op_after(gap))) break;
    const StepOp& op = step_.ops[op_after(gap)];
    std::int64_t born = 0;
    std::int64_t stays = 0;
    const auto add = [&](StorageIndex s) {
      born += count(step_.storages[s].bytes);
      if (counts(s)) stays += count(step_.storages[s].bytes);
    };
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) add(step_.values[op.makes[i]].storage);
    for (const StorageIndex hidden : op.hides) add(hidden);
    need_[op_after(gap)] = level + std::max(count(op.rise), born);
    level += stays;
  }
}

bool ProblemBuilder::touches_moved(const StepOp& op) const {
  const auto moved = [this](ValueIndex v) { return number_[v] != kNone; };
  return std::any_of(op.reads.begin(), op.reads.end(), moved) || std::any_of(op.makes.begin(), op.makes.end(), moved);
}

void ProblemBuilder::add_static(OpIndex op, std::int64_t need) {
  if (closed_ || out_.positions.empty() || out_.positions.back().op != kNone) add_position({}, OpIndex{0});
  closed_ = false;
  Problem::Position& position = out_.positions.back();
  if (need > position.need) {
    position.need = need;
    out_.tops.back() = std::min(op, step_.ops.next_id().previous());
  }
  position_of_[op] = out_.positions.next_id().previous();
}

void ProblemBuilder::add_slot(OpIndex op, ValueIndex v) {
  const MovedIndex n = number_[v];
  Problem::Moved& moved = out_.values[n];
  const std::vector<OpIndex>& uses = facts_.uses[v];
  const auto next = std::upper_bound(uses.begin(), uses.end(), op);
  Problem::Slot slot{.value = n, .position = next_of(out_.positions)};
  const OpIndex end = step_.ops.next_id();
  OpIndex until = next != uses.end() ? *next : std::max(wanted_[n], op);
  if (next != uses.end() || lives_on(v)) {
    const bool carried = storage_of(v).from_before && storage_of(v).outlives;
    const StorageIndex later = next == uses.end() ? facts_.carried_to(step_.values[v].storage) : kNone;
    if (moved.pinned) return;
    const bool around = later != kNone && hot_.any_before(facts_.first_wanted(later));
    if (!around && !hot_.any_between(op, next != uses.end() ? *next : end)) return;
    slot.drop = !carried && (moved.recompute != kNone || moved.batch_norm != kNone);
    slot.spill = carried ? levers_.state : levers_.spill;
    if (!slot.drop && !slot.spill) return;
    if (later != kNone) {
      moved.carried_by = next_of(out_.slots);
      out_.values[number_[facts_.values_of[later].front()]].carried_by = next_of(out_.slots);
    }
  } else {
    if (moved.pinned || step_.values[v].overwritten_by != kNone) return;
    // The program may look at it until it frees the storage: the value stays until then, or is written.
    const OpIndex dies = std::min(op_after(facts_.dies[step_.values[v].storage]), end);
    const bool lingers = levers_.spill && hot_.any_between(op, dies);
    if (!lingers && wanted_[n] <= op) return;
    const bool recomputed = moved.recompute != kNone || moved.batch_norm != kNone;
    slot.last = true;
    slot.drop = recomputed || wanted_[n] <= op || !levers_.hold;
    slot.spill = lingers;
    // A value that is still needed and cannot be recomputed is held, if it may be.
    slot.plain = slot.drop ? After::Drop : After::Keep;
    slot.must_go = !levers_.hold;
    until = std::max(until, dies);
  }
  out_.slots.push_back(slot);
  slot_until_.push_back(until);
}

void ProblemBuilder::add_slots(OpIndex op) {
  const StepOp& it = step_.ops[op];
  std::vector<ValueIndex> seen;
  const auto look = [&](ValueIndex v) {
    if (number_[v] == kNone || std::find(seen.begin(), seen.end(), v) != seen.end()) return;
    seen.push_back(v);
    add_slot(op, v);
  };
  for (const ValueIndex v : it.reads)
    if (std::binary_search(facts_.uses[v].begin(), facts_.uses[v].end(), op) && step_.values[v].overwritten_by != op)
      look(v);
  for (const ValueIndex v : it.makes) look(v);
  for (const MovedIndex n : frees_[gap_after(op)]) {
    const Problem::Moved& moved = out_.values[n];
    if (!moved.pinned || wanted_[n] <= op) continue;
    if (levers_.hold && moved.recompute == kNone && moved.batch_norm == kNone) continue;
    out_.slots.push_back(
        {.value = n, .position = next_of(out_.positions), .drop = true, .last = true, .plain = After::Drop});
    slot_until_.push_back(wanted_[n]);
  }
}

void ProblemBuilder::add_op(OpIndex op) {
  const StepOp& it = step_.ops[op];
  std::vector<ValueIndex> reads;
  for (const ValueIndex v : it.reads)
    if (std::binary_search(facts_.uses[v].begin(), facts_.uses[v].end(), op)) reads.push_back(v);
  Problem::Position position{.op = op, .base = left_[gap_before(op)], .need = need_[op]};
  position_of_[op] = next_of(out_.positions);
  position.reads = list(reads);
  position.makes = made_by(it, it.makes.size());
  position.slots.from = next_of(out_.slots);
  add_slots(op);
  position.slots.until = next_of(out_.slots);
  position.frees.from = next_of(out_.lists);
  for (const MovedIndex n : frees_[gap_after(op)]) out_.lists.push_back(n);
  position.frees.until = next_of(out_.lists);
  position.frees_late = frees_late_[gap_after(op)];
  for (const IdRange<ListIndex> came : {position.reads, position.frees})
    for (const MovedIndex n : out_.lists[came]) out_.values[n].restore_until = next_of(out_.positions);
  add_position(position, op);
}

// The step ends as it began: what outlives it is present, unless it is away.
void ProblemBuilder::add_end() {
  const OpIndex ops = step_.ops.next_id();
  Problem::Position end{.op = ops, .base = left_.back(), .need = gap_most_.back()};
  position_of_[ops] = next_of(out_.positions);
  end.reads.from = next_of(out_.lists);
  for (const MovedIndex n : out_.values.ids().backwards()) {
    Problem::Moved& moved = out_.values[n];
    if (!lives_on(moved.value)) continue;
    moved.restore_until = next_of(out_.positions);
    out_.lists.push_back(n);
  }
  end.reads.until = next_of(out_.lists);
  add_position(end, step_.ops.empty() ? ops : ops.previous());
}

void ProblemBuilder::build_positions() {
  sum_static_levels();
  position_of_.assign(step_.ops.size() + 1, PositionIndex{0});
  for (const OpIndex op : step_.ops.ids()) {
    const GapIndex gap = gap_before(op);
    const bool late = frees_late_[gap];
    if (late || gap_most_[gap] > left_[gap]) add_static(op, gap_most_[gap]);
    closed_ = late;
    if (touches_moved(step_.ops[op]) || !frees_[gap_after(op)].empty())
      add_op(op);
    else
      add_static(op, need_[op]);
  }
  if (frees_late_.back()) add_static(step_.ops.next_id(), gap_most_.back());
  add_end();
  for (const SlotIndex i : out_.slots.ids()) {
    Problem::Slot& slot = out_.slots[i];
    slot.until = position_of_[slot_until_[i]];
    Problem::Moved& value = out_.values[slot.value];
    (slot.last ? value.last_slot : value.main_slot) = i;
  }
}

}  // namespace ullage::plan
