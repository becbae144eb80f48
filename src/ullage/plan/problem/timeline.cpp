// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/problem/timeline.h"

#include <algorithm>

namespace ullage::plan {
namespace {

// State::from of a pinned value in the program's storage. While the program has that storage, its bytes count in
// `base`, so the stay has none.
constexpr HappeningIndex kUncounted{INT32_MAX};

// A choice with more happenings per position than this is given up as not possible.
constexpr std::int32_t kMostHappenings = 12;

}  // namespace

bool away(const Problem::Moved& value, const Choice& choice) {
  return value.idle || (value.carried_by != kNone && choice.after[value.carried_by] == After::Spill);
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
  const PositionIndex end = problem_.positions.next_id();
  for (position_ = {}; possible && position_ < end; position_ = position_.next())
    possible = play(problem_.positions[position_], choice);
  effort_ += static_cast<std::uint64_t>(now_.next().value);
  if (possible) finish(budget, outcome_);
  // Clears `change_` for the next run, also if this one stopped early.
  std::fill(change_.begin(), change_.begin() + now_.value + 3, 0);
  outcome_.possible = possible;
  return outcome_;
}

void Timeline::begin(const Choice& choice) {
  outcome_ = {};
  now_ = kNone;
  recomputed_.clear();
  std::fill(state_.begin(), state_.end(), State{});
  for (const MovedIndex v : problem_.values.ids()) {
    const Problem::Moved& value = problem_.values[v];
    if (!value.from_before) break;  // values from before come first
    const bool gone = away(value, choice);
    state_[v] = {.from = kNone, .to = kNone, .present = !gone, .written = gone};
  }
}

bool Timeline::play(const Problem::Position& at, const Choice& choice) {
  if (at.op == kNone) {
    step_to({.what = Happening::What::Static}, at.need);
    return room_for(2);
  }
  op_ = at.op;
  base_ = at.base;
  if (position_.next() == problem_.positions.next_id()) return play_end(at, choice);
  for (const MovedIndex v : problem_.lists[at.reads])
    if (!state_[v].present && !fetch(v)) return false;
  step_to({.what = Happening::What::Op}, at.need);
  if (!use(at.reads)) return false;
  for (const Problem::Made& made : problem_.made[at.makes]) make(made, true);
  for (const SlotIndex i : at.slots) {
    const Problem::Slot& slot = problem_.slots[i];
    const MovedIndex v = slot.value;
    State& state = state_[v];
    const After after = choice.after[i];
    if ((after == After::Keep && !slot.must_go) || !state.present) continue;
    if (after == After::Spill && !state.written) {
      state.written = true;
      outcome_.written += problem_.values[v].bytes;
    }
    leave(v, Stay::End::Chosen);
  }
  for (const MovedIndex v : problem_.lists[at.frees]) freed(v, at.frees_late ? now_.next() : now_);
  for (const MovedIndex v : recomputed_)
    if (choice.again[v] != 0 && state_[v].present) leave(v, Stay::End::Chosen);
  recomputed_.clear();
  return room_for(2);
}

// The program frees the storage after the happening `until`, and may look at the value until then. So the value counts
// until then even if the choice dropped it, unless a copy was written.
void Timeline::freed(MovedIndex v, HappeningIndex until) {
  State& state = state_[v];
  const Problem::Moved& value = problem_.values[v];
  if (value.pinned) {
    if (state.present && state.from == kUncounted) state.from = now_;
    return;
  }
  if (state.present) {
    state.to = until;
  } else if (!state.written) {
    // Nothing used its last stay, so leave() did not count it as a move. Now the value is kept until the free, so it is
    // one.
    if (state.recomputed && state.to <= state.from) ++outcome_.moves;
    change_[std::max(state.from, state.to).next()] += value.bytes;
    change_[until.next()] -= value.bytes;
    if (record_ != nullptr) record_->stays[state.record].to = until;
  }
}

// Brings back all that outlives the step, except what is away when it ends.
bool Timeline::play_end(const Problem::Position& at, const Choice& choice) {
  for (const bool back : {true, false}) {
    if (!back) step_to({.what = Happening::What::Op}, at.need);
    for (const MovedIndex v : problem_.lists[at.reads]) {
      if (away(problem_.values[v], choice)) continue;
      if (back && !state_[v].present && !fetch(v)) return false;
      state_[v].to = now_;
    }
  }
  return true;
}

// Brings a value back. Callers fetch newer values first: recomputing an in-place op uses up an older value, which is
// then recomputed if it is needed too. In the other order it would be lost again.
bool Timeline::fetch(MovedIndex v) {
  const Problem::Moved& value = problem_.values[v];
  if (state_[v].written && position_ <= value.restore_until) {
    step_to({.what = Happening::What::Restore, .value = v}, base_);
    come(v);
    recomputed_.push_back(v);
    outcome_.read += value.bytes;
    ++outcome_.moves;
    return room_for(2);
  }
  const RecipeIndex recipe = way(value);
  return recipe != kNone && recompute(recipe);
}

// Prefers the one-pass batch norm. If small statistics that it needs are gone, takes the whole op instead.
RecipeIndex Timeline::way(const Problem::Moved& value) const {
  if (value.batch_norm == kNone || value.recompute == kNone)
    return value.batch_norm == kNone ? value.recompute : value.batch_norm;
  for (const MovedIndex u : problem_.lists[problem_.recipes[value.batch_norm].reads])
    if (problem_.values[u].pinned && !state_[u].present) return value.recompute;
  return value.batch_norm;
}

bool Timeline::use(IdRange<ListIndex> reads) {
  for (const MovedIndex v : problem_.lists[reads]) {
    State& state = state_[v];
    if (!state.present) return false;
    state.to = now_;
  }
  return true;
}

bool Timeline::recompute(RecipeIndex r) {
  const Problem::Recipe& recipe = problem_.recipes[r];
  if (op_ > recipe.until) return false;
  for (const MovedIndex u : problem_.lists[recipe.reads])
    if (!state_[u].present && !fetch(u)) return false;
  if (!room_for(3)) return false;
  step_to({.what = Happening::What::Recompute, .recipe = r}, base_ + recipe.rise);
  outcome_.recompute_seconds += recipe.seconds;
  if (!use(recipe.reads)) return false;
  for (const Problem::Made& made : problem_.made[recipe.makes]) make(made, false);
  return true;
}

void Timeline::make(const Problem::Made& made, bool by_program) {
  if (made.over != kNone) {
    leave(made.over, Stay::End::Overwritten);
    state_[made.over].written = false;
  }
  State& state = state_[made.value];
  const Problem::Moved& value = problem_.values[made.value];
  // A result that is present already, or whose copy can still be restored, is not kept.
  if (state.present || (state.written && position_ <= value.restore_until)) return;
  come(made.value);
  if (!by_program) {
    recomputed_.push_back(made.value);
    state.recomputed = true;
  } else if (value.pinned) {
    state.from = kUncounted;
  }
}

void Timeline::come(MovedIndex v) {
  State& state = state_[v];
  state.present = true;
  state.from = state.to = now_;
  state.recomputed = false;
}

void Timeline::leave(MovedIndex v, Stay::End end) {
  State& state = state_[v];
  state.present = false;
  if (end == Stay::End::Chosen && state.written) ++outcome_.moves;
  if (record_ != nullptr && state.from != kUncounted) {
    state.record = record_->stays.push_back(
        {.value = v, .from = state.from, .to = state.to, .end = end, .written = state.written});
  }
  if (state.to <= state.from) return;  // counted in `base` (kUncounted), or not used by anything
  if (state.recomputed) ++outcome_.moves;
  const std::int64_t bytes = problem_.values[v].bytes;
  change_[state.from.next()] += bytes;
  change_[state.to.next()] -= bytes;
}

void Timeline::step_to(Happening happening, std::int64_t need) {
  now_ = now_.next();
  need_[now_] = need;
  where_[now_] = position_;
  if (record_ == nullptr) return;
  happening.position = position_;
  record_->happenings.push_back(happening);
}

void Timeline::finish(std::int64_t budget, Outcome& outcome) {
  for (const MovedIndex v : state_.ids())
    if (state_[v].present) leave(v, Stay::End::Last);
  std::int64_t level = 0;
  std::int64_t over = 0;
  HappeningIndex top;
  for (const HappeningIndex i : IdRange<HappeningIndex>{{}, now_.next()}) {
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
  outcome.seconds = outcome.recompute_seconds + static_cast<double>(outcome.moves) * problem_.each_seconds +
                    static_cast<double>(outcome.written) * problem_.write_seconds +
                    static_cast<double>(outcome.read) * problem_.read_seconds;
}

}  // namespace ullage::plan
