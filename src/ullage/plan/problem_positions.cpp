// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem_builder.h"

#include <algorithm>

namespace ullage::plan {

// Of what is not moved: the most in each gap, the level when each op begins, the most while it runs.
void ProblemBuilder::sum_static_levels() {
  const std::size_t ops = step_.ops.size();
  gap_most_.assign(ops + 1, 0);
  before_.assign(ops + 1, 0);
  need_.assign(ops + 1, 0);
  frees_.assign(ops + 1, {});
  frees_late_.assign(ops + 1, false);
  std::int64_t level = count(step_.level);
  // A moved storage too small to have pages of its own counts here as long as the program has it.
  const auto counts = [this](std::uint64_t s) { return !moved_[s] || !step_.storages[s].movable; };
  for (std::size_t s = 0; s < step_.storages.size(); ++s)
    if (step_.storages[s].from_before && !counts(s)) level -= count(step_.storages[s].bytes);
  for (std::size_t gap = 0; gap <= ops; ++gap) {
    gap_most_[gap] = level;
    bool born_before = false;
    for (const GapEvent& event : step_.gaps[gap]) {
      const std::uint64_t s = event.storage.value;
      born_before = born_before || event.born;
      if (!event.born && moved_[s] && gap > 0) {
        if (born_before) frees_late_[gap - 1] = true;
        for (const std::size_t v : facts_.values_of[s])
          if (step_.values[v].overwritten_by == kNone) frees_[gap - 1].push_back(number_[v]);
      }
      if (!counts(s)) continue;
      level += event.born ? count(step_.storages[s].bytes) : -count(step_.storages[s].bytes);
      gap_most_[gap] = std::max(gap_most_[gap], level);
    }
    before_[gap] = level;
    if (gap == ops) break;
    const StepOp& op = step_.ops[gap];
    std::int64_t born = 0;
    std::int64_t stays = 0;
    const auto add = [&](std::uint64_t s) {
      born += count(step_.storages[s].bytes);
      if (counts(s)) stays += count(step_.storages[s].bytes);
    };
    for (std::size_t i = op.overwrites; i < op.makes.size(); ++i) add(step_.values[op.makes[i].value].storage.value);
    for (const StorageIndex hidden : op.hides) add(hidden.value);
    need_[gap] = level + std::max(count(op.rise), born);
    level += stays;
  }
}

bool ProblemBuilder::touches_moved(const StepOp& op) const {
  const auto moved = [this](ValueIndex v) { return number_[v.value] >= 0; };
  return std::any_of(op.reads.begin(), op.reads.end(), moved) || std::any_of(op.makes.begin(), op.makes.end(), moved);
}

void ProblemBuilder::add_static(std::size_t op, std::int64_t need) {
  if (closed_ || out_.positions.empty() || out_.positions.back().op >= 0) out_.positions.push_back({});
  closed_ = false;
  Problem::Position& position = out_.positions.back();
  if (need > position.need) {
    position.need = need;
    position.top = narrow(std::min(op, step_.ops.size() - 1));
  }
  position_of_[op] = narrow(out_.positions.size()) - 1;
}

void ProblemBuilder::add_slot(std::size_t op, std::size_t v) {
  const auto n = static_cast<std::size_t>(number_[v]);
  Problem::Moved& moved = out_.values[n];
  const std::vector<std::size_t>& uses = facts_.uses[v];
  const auto next = std::upper_bound(uses.begin(), uses.end(), op);
  Problem::Slot slot{.value = narrow(n), .position = narrow(out_.positions.size())};
  const std::size_t end = step_.ops.size();
  slot.until = narrow(next != uses.end() ? *next : std::max(wanted_[n], op));
  if (next != uses.end() || lives_on(v)) {
    const bool carried = storage_of(v).from_before;
    const bool border = carried && next == uses.end();
    const std::size_t first = facts_.values_of[step_.values[v].storage.value].front();
    if (moved.pinned) return;
    const bool around = border && hot_.any_before(facts_.uses[first].front());
    if (!around && !hot_.any_between(op, next != uses.end() ? *next : end)) return;
    if (border) moved.carried_by = narrow(out_.slots.size());
    if (border) out_.values[static_cast<std::size_t>(number_[first])].carried_by = narrow(out_.slots.size());
    slot.drop = !carried && (moved.rerun >= 0 || moved.apply >= 0);
    slot.spill = carried ? levers_.state : levers_.spill;
    if (!slot.drop && !slot.spill) return;
  } else {
    if (moved.pinned || step_.values[v].overwritten_by != kNone) return;
    // The program may look at it as long as it has it: it is there until then, or written.
    const std::uint64_t dies = facts_.dies[step_.values[v].storage.value];
    const bool lingers = levers_.spill && hot_.any_between(op, std::min<std::uint64_t>(dies, end));
    if (!lingers && wanted_[n] <= op) return;
    const bool remade = moved.rerun >= 0 || moved.apply >= 0;
    slot.last = true;
    slot.drop = remade || wanted_[n] <= op || !levers_.hold;
    slot.spill = lingers;
    // What cannot be made again is there as long as it is wanted.
    slot.plain = slot.drop ? After::Drop : After::Keep;
    slot.must_go = !levers_.hold;
    slot.until =
        narrow(std::max<std::uint64_t>(static_cast<std::uint64_t>(slot.until), std::min<std::uint64_t>(dies, end)));
  }
  out_.slots.push_back(slot);
}

void ProblemBuilder::add_slots(std::size_t op) {
  const StepOp& it = step_.ops[op];
  std::vector<std::size_t> seen;
  const auto look = [&](ValueIndex v) {
    if (number_[v.value] < 0 || std::find(seen.begin(), seen.end(), v.value) != seen.end()) return;
    seen.push_back(v.value);
    add_slot(op, v.value);
  };
  for (const ValueIndex v : it.reads)
    if (std::binary_search(facts_.uses[v.value].begin(), facts_.uses[v.value].end(), op) &&
        step_.values[v.value].overwritten_by != OpIndex{op})
      look(v);
  for (const ValueIndex v : it.makes) look(v);
  for (const std::int32_t n : frees_[op]) {
    const Problem::Moved& moved = out_.values[static_cast<std::size_t>(n)];
    if (!moved.pinned || wanted_[static_cast<std::size_t>(n)] <= op) continue;
    if (levers_.hold && moved.rerun < 0 && moved.apply < 0) continue;
    out_.slots.push_back({.value = n,
                          .position = narrow(out_.positions.size()),
                          .drop = true,
                          .last = true,
                          .until = narrow(wanted_[static_cast<std::size_t>(n)]),
                          .plain = After::Drop});
  }
}

void ProblemBuilder::add_op(std::size_t op) {
  const StepOp& it = step_.ops[op];
  std::vector<ValueIndex> reads;
  for (const ValueIndex v : it.reads)
    if (std::binary_search(facts_.uses[v.value].begin(), facts_.uses[v.value].end(), op)) reads.push_back(v);
  Problem::Position position{.op = narrow(op), .base = before_[op], .need = need_[op], .top = narrow(op)};
  position_of_[op] = narrow(out_.positions.size());
  position.reads = list(reads);
  position.makes = made_by(it, it.makes.size());
  position.slots.begin = narrow(out_.slots.size());
  add_slots(op);
  position.slots.end = narrow(out_.slots.size());
  position.frees.begin = narrow(out_.lists.size());
  out_.lists.insert(out_.lists.end(), frees_[op].begin(), frees_[op].end());
  position.frees.end = narrow(out_.lists.size());
  position.frees_late = frees_late_[op];
  for (const Range came : {position.reads, position.frees})
    for (std::int32_t i = came.begin; i < came.end; ++i)
      out_.values[static_cast<std::size_t>(out_.lists[static_cast<std::size_t>(i)])].restore_until =
          narrow(out_.positions.size());
  out_.positions.push_back(position);
}

// The step ends as it began: what lives on is there, unless it is away.
void ProblemBuilder::add_end() {
  const std::size_t ops = step_.ops.size();
  Problem::Position end{.op = narrow(ops), .base = before_[ops], .need = gap_most_[ops]};
  end.top = ops == 0 ? 0 : narrow(ops) - 1;
  position_of_[ops] = narrow(out_.positions.size());
  end.reads.begin = narrow(out_.lists.size());
  for (std::size_t n = out_.values.size(); n-- > 0;) {
    Problem::Moved& moved = out_.values[n];
    if (!lives_on(moved.value.value)) continue;
    moved.restore_until = narrow(out_.positions.size());
    out_.lists.push_back(narrow(n));
  }
  end.reads.end = narrow(out_.lists.size());
  out_.positions.push_back(end);
}

void ProblemBuilder::build_positions() {
  sum_static_levels();
  position_of_.assign(step_.ops.size() + 1, 0);
  for (std::size_t op = 0; op < step_.ops.size(); ++op) {
    const bool late = op > 0 && frees_late_[op - 1];
    if (late || gap_most_[op] > before_[op]) add_static(op, gap_most_[op]);
    closed_ = late;
    if (touches_moved(step_.ops[op]) || !frees_[op].empty())
      add_op(op);
    else
      add_static(op, need_[op]);
  }
  if (!step_.ops.empty() && frees_late_[step_.ops.size() - 1]) add_static(step_.ops.size(), gap_most_.back());
  add_end();
  // Until now the slots' `until` are ops.
  for (std::size_t i = 0; i < out_.slots.size(); ++i) {
    Problem::Slot& slot = out_.slots[i];
    slot.until = position_of_[static_cast<std::size_t>(slot.until)];
    Problem::Moved& value = out_.values[static_cast<std::size_t>(slot.value)];
    (slot.last ? value.last_slot : value.main_slot) = narrow(i);
  }
}

}  // namespace ullage::plan
