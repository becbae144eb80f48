// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/timeline.h"

#include <algorithm>

namespace ullage::plan {
namespace {

// A storage of the program's own that cannot be moved counts in `base`: its stay has no bytes until it is freed.
constexpr std::int32_t kUncounted = INT32_MAX;

// Chains that grow beyond this many happenings for each position are no plan.
constexpr std::int32_t kMostHappenings = 12;

}  // namespace

bool away(const Problem::Moved& value, const Choice& choice) {
  return value.carried_by >= 0 && choice.after[static_cast<std::size_t>(value.carried_by)] == After::Spill;
}

Timeline::Timeline(const Problem& problem) : problem_(problem), state_(problem.values.size()) {
  const std::size_t most = problem.positions.size() * kMostHappenings + 64;
  change_.resize(most + 4);
  need_.resize(most + 4);
  where_.resize(most + 4);
}

Outcome Timeline::run(const Choice& choice, std::int64_t budget) {
  record_ = nullptr;
  return go(choice, budget);
}

Outcome Timeline::run(const Choice& choice, std::int64_t budget, Record& record) {
  record = {};
  record_ = &record;
  const Outcome outcome = go(choice, budget);
  record_ = nullptr;
  return outcome;
}

Outcome Timeline::go(const Choice& choice, std::int64_t budget) {
  begin(choice);
  bool possible = true;
  for (position_ = 0; possible && position_ < static_cast<std::int32_t>(problem_.positions.size()); ++position_)
    possible = play(problem_.positions[static_cast<std::size_t>(position_)], choice);
  effort_ += static_cast<std::uint64_t>(now_ + 1);
  if (possible) finish(budget, outcome_);
  // What was added is taken back, wherever it stopped.
  std::fill(change_.begin(), change_.begin() + now_ + 3, 0);
  outcome_.possible = possible;
  return outcome_;
}

void Timeline::begin(const Choice& choice) {
  outcome_ = {};
  now_ = -1;
  remade_.clear();
  std::fill(state_.begin(), state_.end(), State{});
  for (std::size_t v = 0; v < problem_.values.size(); ++v) {
    const Problem::Moved& value = problem_.values[v];
    if (!value.from_before) break;  // they come first
    const bool gone = away(value, choice);
    state_[v] = {.from = -1, .to = -1, .present = !gone, .written = gone};
  }
}

bool Timeline::play(const Problem::Position& at, const Choice& choice) {
  if (at.op < 0) {
    step_to(Happening::What::Static, -1, at.need);
    return now_ + 2 < static_cast<std::int32_t>(need_.size());
  }
  op_ = at.op;
  base_ = at.base;
  if (position_ + 1 == static_cast<std::int32_t>(problem_.positions.size())) return play_end(at, choice);
  for (std::int32_t i = at.reads.begin; i < at.reads.end; ++i) {
    const std::int32_t v = problem_.lists[static_cast<std::size_t>(i)];
    if (!state_[static_cast<std::size_t>(v)].present && !fetch(v)) return false;
  }
  step_to(Happening::What::Op, -1, at.need);
  if (!use(at.reads)) return false;
  for (std::int32_t i = at.makes.begin; i < at.makes.end; ++i) make(problem_.made[static_cast<std::size_t>(i)], true);
  for (std::int32_t i = at.slots.begin; i < at.slots.end; ++i) {
    const Problem::Slot& slot = problem_.slots[static_cast<std::size_t>(i)];
    const std::int32_t v = slot.value;
    State& state = state_[static_cast<std::size_t>(v)];
    const After after = choice.after[static_cast<std::size_t>(i)];
    if ((after == After::Keep && !slot.must_go) || !state.present) continue;
    if (after == After::Spill && !state.written) {
      state.written = true;
      outcome_.written += problem_.values[static_cast<std::size_t>(v)].bytes;
    }
    leave(v, Stay::End::Chosen);
  }
  for (std::int32_t i = at.frees.begin; i < at.frees.end; ++i)
    freed(problem_.lists[static_cast<std::size_t>(i)], at.frees_late ? now_ + 1 : now_);
  for (const std::int32_t v : remade_)
    if (choice.again[static_cast<std::size_t>(v)] != 0 && state_[static_cast<std::size_t>(v)].present)
      leave(v, Stay::End::Chosen);
  remade_.clear();
  return now_ + 2 < static_cast<std::int32_t>(need_.size());
}

// The program lets go of the storage, behind the happening `until`. What is in it stays until then, also where it was
// to go and left no copy: the program may look at it as long as it has it.
void Timeline::freed(std::int32_t v, std::int32_t until) {
  State& state = state_[static_cast<std::size_t>(v)];
  const Problem::Moved& value = problem_.values[static_cast<std::size_t>(v)];
  if (value.pinned) {
    if (state.present && state.from == kUncounted) state.from = now_;
    return;
  }
  if (state.present) {
    state.to = until;
  } else if (!state.written) {
    if (state.remade && state.to <= state.from) ++outcome_.moves;  // for this after all
    change_[static_cast<std::size_t>(std::max(state.from, state.to)) + 1] += value.bytes;
    change_[static_cast<std::size_t>(until) + 1] -= value.bytes;
    if (record_ != nullptr) record_->stays[static_cast<std::size_t>(state.record)].to = until;
  }
}

// What lives on is there when the step ends, but what is away then.
bool Timeline::play_end(const Problem::Position& at, const Choice& choice) {
  for (const bool back : {true, false}) {
    if (!back) step_to(Happening::What::Op, -1, at.need);
    for (std::int32_t i = at.reads.begin; i < at.reads.end; ++i) {
      const auto v = static_cast<std::size_t>(problem_.lists[static_cast<std::size_t>(i)]);
      if (away(problem_.values[v], choice)) continue;
      if (back && !state_[v].present && !fetch(static_cast<std::int32_t>(v))) return false;
      state_[v].to = now_;
    }
  }
  return true;
}

// What is newest is looked for first: running an in-place op again uses up an older value, which is then remade if it
// is wanted too; the other way round it would be lost again.
bool Timeline::fetch(std::int32_t v) {
  const Problem::Moved& value = problem_.values[static_cast<std::size_t>(v)];
  if (state_[static_cast<std::size_t>(v)].written && position_ <= value.restore_until) {
    step_to(Happening::What::Restore, v, base_);
    come(v);
    remade_.push_back(v);
    outcome_.read += value.bytes;
    ++outcome_.moves;
    return now_ + 2 < static_cast<std::int32_t>(need_.size());
  }
  const Problem::Recipe* recipe = way(value);
  return recipe != nullptr && remake(*recipe);
}

// One pass over the batch norm's input where the small statistics that it saved are still there, else the whole op.
const Problem::Recipe* Timeline::way(const Problem::Moved& value) const {
  if (value.apply >= 0) {
    const Problem::Recipe& apply = problem_.recipes[static_cast<std::size_t>(value.apply)];
    bool there = true;
    for (std::int32_t i = apply.reads.begin; i < apply.reads.end && value.rerun >= 0; ++i) {
      const auto u = static_cast<std::size_t>(problem_.lists[static_cast<std::size_t>(i)]);
      if (problem_.values[u].pinned) there = there && state_[u].present;
    }
    if (there) return &apply;
  }
  return value.rerun < 0 ? nullptr : &problem_.recipes[static_cast<std::size_t>(value.rerun)];
}

bool Timeline::use(Range reads) {
  for (std::int32_t i = reads.begin; i < reads.end; ++i) {
    State& state = state_[static_cast<std::size_t>(problem_.lists[static_cast<std::size_t>(i)])];
    if (!state.present) return false;
    state.to = now_;
  }
  return true;
}

bool Timeline::remake(const Problem::Recipe& recipe) {
  if (op_ > recipe.until) return false;
  for (std::int32_t i = recipe.reads.begin; i < recipe.reads.end; ++i) {
    const std::int32_t u = problem_.lists[static_cast<std::size_t>(i)];
    if (!state_[static_cast<std::size_t>(u)].present && !fetch(u)) return false;
  }
  if (now_ + 3 >= static_cast<std::int32_t>(need_.size())) return false;
  step_to(Happening::What::Rerun, static_cast<std::int32_t>(&recipe - problem_.recipes.data()), base_ + recipe.rise);
  outcome_.rerun_seconds += recipe.seconds;
  if (!use(recipe.reads)) return false;
  for (std::int32_t i = recipe.makes.begin; i < recipe.makes.end; ++i)
    make(problem_.made[static_cast<std::size_t>(i)], false);
  return true;
}

void Timeline::make(const Problem::Made& made, bool by_program) {
  if (made.over >= 0) {
    leave(made.over, Stay::End::Overwritten);
    state_[static_cast<std::size_t>(made.over)].written = false;
  }
  State& state = state_[static_cast<std::size_t>(made.value)];
  const Problem::Moved& value = problem_.values[static_cast<std::size_t>(made.value)];
  // What is there already goes at once; so does what is written and will come back from there.
  if (state.present || (state.written && position_ <= value.restore_until)) return;
  come(made.value);
  if (!by_program) {
    remade_.push_back(made.value);
    state.remade = true;
  } else if (value.pinned) {
    state.from = kUncounted;
  }
}

void Timeline::come(std::int32_t v) {
  State& state = state_[static_cast<std::size_t>(v)];
  state.present = true;
  state.from = state.to = now_;
  state.remade = false;
}

void Timeline::leave(std::int32_t v, Stay::End end) {
  State& state = state_[static_cast<std::size_t>(v)];
  state.present = false;
  if (end == Stay::End::Chosen && state.written) ++outcome_.moves;
  if (record_ != nullptr && state.from != kUncounted) {
    state.record = static_cast<std::int32_t>(record_->stays.size());
    record_->stays.push_back({.value = v, .from = state.from, .to = state.to, .end = end, .written = state.written});
  }
  if (state.to <= state.from) return;  // too small to be moved, or not wanted by anyone
  if (state.remade) ++outcome_.moves;
  const std::int64_t bytes = problem_.values[static_cast<std::size_t>(v)].bytes;
  change_[static_cast<std::size_t>(state.from) + 1] += bytes;
  change_[static_cast<std::size_t>(state.to) + 1] -= bytes;
}

void Timeline::step_to(Happening::What what, std::int32_t which, std::int64_t need) {
  ++now_;
  need_[static_cast<std::size_t>(now_)] = need;
  where_[static_cast<std::size_t>(now_)] = position_;
  if (record_ != nullptr) record_->happenings.push_back({.what = what, .position = position_, .which = which});
}

void Timeline::finish(std::int64_t budget, Outcome& outcome) {
  for (std::size_t v = 0; v < state_.size(); ++v)
    if (state_[v].present) leave(static_cast<std::int32_t>(v), Stay::End::Last);
  std::int64_t level = 0;
  std::int64_t over = 0;
  std::size_t top = 0;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(now_); ++i) {
    level += change_[i];
    const std::int64_t most = level + need_[i];
    if (most > outcome.peak) {
      outcome.peak = most;
      top = i;
    }
    over += std::max<std::int64_t>(0, most - budget);
    if (record_ != nullptr) record_->happenings[i].level = most;
  }
  outcome.peak_at = where_[top];
  outcome.over = static_cast<double>(over);
  outcome.seconds = outcome.rerun_seconds + static_cast<double>(outcome.moves) * problem_.each_seconds +
                    static_cast<double>(outcome.written) * problem_.write_seconds +
                    static_cast<double>(outcome.read) * problem_.read_seconds;
}

}  // namespace ullage::plan
