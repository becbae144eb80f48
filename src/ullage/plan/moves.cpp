// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/moves.h"

#include <algorithm>
#include <cmath>

namespace ullage::plan {
namespace {

// The part of the moves that look at where the level is too high, or at what is away.
constexpr double kGuided = 0.4;
// The part that looks at blocks that repeat, taken first.
constexpr double kBlocks = 0.3;
// In exchange for one value: how many more are looked at.
constexpr int kMostMore = 4;
// Values that are looked at to find one that fits.
constexpr int kTries = 16;

}  // namespace

Moves::Moves(const Problem& problem, std::uint64_t seed, bool copies)
    : problem_(problem),
      random_(seed),
      copies_(copies),
      like_(likeness_of(problem)),
      main_slot_(problem.values.size(), -1) {
  double sum = 0;
  weights_.reserve(problem.slots.size());
  for (std::size_t i = 0; i < problem.slots.size(); ++i) {
    const Problem::Slot& slot = problem.slots[i];
    sum += std::sqrt(static_cast<double>(problem.values[static_cast<std::size_t>(slot.value)].bytes));
    weights_.push_back(sum);
    main_slot_[static_cast<std::size_t>(slot.value)] = static_cast<std::int32_t>(i);
  }
}

void Moves::make(Choice& choice, std::int32_t peak_at) {
  choice_ = &choice;
  undo_.clear();
  move(peak_at);
}

std::int32_t Moves::pick() {
  const double at = random_.part() * weights_.back();
  const auto found = std::upper_bound(weights_.begin(), weights_.end(), at) - weights_.begin();
  return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(found, static_cast<std::ptrdiff_t>(weights_.size()) - 1));
}

void Moves::set(std::int32_t slot, After after) {
  const Problem::Slot& it = problem_.slots[static_cast<std::size_t>(slot)];
  if ((after == After::Drop && !it.drop) || (after == After::Spill && !(it.spill && copies_))) return;
  After& now = choice_->after[static_cast<std::size_t>(slot)];
  undo_.push_back({.at = slot, .was = static_cast<std::uint8_t>(now)});
  now = after;
}

// Another action than now, of those that are allowed.
void Moves::change(std::int32_t slot) {
  const Problem::Slot& it = problem_.slots[static_cast<std::size_t>(slot)];
  After others[2];
  std::size_t count = 0;
  for (const After after : {After::Keep, After::Drop, After::Spill}) {
    const bool allowed = after == After::Keep || (after == After::Drop ? it.drop : it.spill && copies_);
    if (allowed && after != get(slot)) others[count++] = after;
  }
  if (count > 0) set(slot, others[random_.below(count)]);
}

void Moves::change_again(std::int32_t value) {
  std::uint8_t& again = choice_->again[static_cast<std::size_t>(value)];
  undo_.push_back({.again = true, .at = value, .was = again});
  again ^= 1;
}

void Moves::swap(std::int32_t a, std::int32_t b) {
  const After was_a = get(a);
  const After was_b = get(b);
  if (was_a == was_b) return change(a);
  set(a, was_b);
  set(b, was_a);
}

// A slot of a value from which that of `slot` is made, up to three ops back; the same slot where there is none.
std::int32_t Moves::parent(std::int32_t slot) {
  std::int32_t value = problem_.slots[static_cast<std::size_t>(slot)].value;
  std::int32_t found = slot;
  for (int depth = 0; depth < 4; ++depth) {
    const Problem::Moved& it = problem_.values[static_cast<std::size_t>(value)];
    const std::int32_t way = it.rerun >= 0 ? it.rerun : it.apply;
    if (way < 0) break;
    const Range reads = problem_.recipes[static_cast<std::size_t>(way)].reads;
    if (reads.begin == reads.end) break;
    value = problem_.lists[static_cast<std::size_t>(reads.begin) +
                           random_.below(static_cast<std::size_t>(reads.end - reads.begin))];
    const std::int32_t at = main_slot_[static_cast<std::size_t>(value)];
    if (at >= 0) found = at;
    if (random_.part() < 0.5 && found != slot) break;
  }
  return found;
}

bool Moves::covers(std::int32_t slot, std::int32_t position) const {
  const Problem::Slot& it = problem_.slots[static_cast<std::size_t>(slot)];
  return it.position < position && position <= it.until;
}

// One that is kept, or is away, over a position; any, where a few tries find none.
std::int32_t Moves::pick_at(std::int32_t position, bool kept) {
  std::int32_t slot = pick();
  for (int i = 0; i < kTries && !(covers(slot, position) && (get(slot) == After::Keep) == kept); ++i) slot = pick();
  return slot;
}

std::int32_t Moves::pick_away() {
  std::int32_t slot = pick();
  for (int i = 0; i < kTries && (get(slot) == After::Keep || problem_.slots[static_cast<std::size_t>(slot)].last); ++i)
    slot = pick();
  return slot;
}

std::int64_t Moves::bytes_of(std::int32_t slot) const {
  const std::int32_t value = problem_.slots[static_cast<std::size_t>(slot)].value;
  return problem_.values[static_cast<std::size_t>(value)].bytes;
}

std::int32_t Moves::position_in(std::int32_t slot) {
  const Problem::Slot& it = problem_.slots[static_cast<std::size_t>(slot)];
  const auto length = static_cast<std::size_t>(std::max(1, it.until - it.position));
  return it.position + 1 + static_cast<std::int32_t>(random_.below(length));
}

// With all that the same op makes: one rerun brings back all of them, so it is worth it for all or for none.
void Moves::set_with_siblings(std::int32_t slot, After after) {
  set(slot, after);
  const std::int32_t value = problem_.slots[static_cast<std::size_t>(slot)].value;
  const std::int32_t way = problem_.values[static_cast<std::size_t>(value)].rerun;
  if (way < 0) return;
  const Range makes = problem_.recipes[static_cast<std::size_t>(way)].makes;
  for (std::int32_t i = makes.begin; i < makes.end; ++i) {
    const std::int32_t made = problem_.made[static_cast<std::size_t>(i)].value;
    const std::int32_t sibling = problem_.values[static_cast<std::size_t>(made)].main_slot;
    if (made != value && sibling >= 0) set(sibling, after);
  }
}

// One comes back, and another goes for it, or several that weigh as much.
void Moves::exchange() {
  const std::int32_t back = pick_away();
  const std::int32_t at = position_in(back);
  const std::int32_t away = pick_at(at, true);
  set_with_siblings(back, After::Keep);
  if (away == back) return;
  change(away);
  std::int64_t room = bytes_of(back) - bytes_of(away);
  for (int i = 0; i < kMostMore && room > 0; ++i) {
    const std::int32_t more = pick_at(at, true);
    if (more == back || get(more) != After::Keep) continue;
    room -= bytes_of(more);
    change(more);
  }
}

// One goes, and several come back that weigh as much.
void Moves::exchange_for_several() {
  const std::int32_t away = pick();
  if (get(away) != After::Keep) return exchange();
  const std::int32_t at = position_in(away);
  change(away);
  std::int64_t room = bytes_of(away);
  for (int i = 0; i < kMostMore && room > 0; ++i) {
    const std::int32_t back = pick_at(at, false);
    if (back == away || get(back) == After::Keep || bytes_of(back) > room) continue;
    room -= bytes_of(back);
    set_with_siblings(back, After::Keep);
  }
}

// One goes, and what it would be made from stays.
void Moves::drop_and_hold() {
  const std::int32_t slot = pick();
  set_with_siblings(slot, After::Drop);
  held_.clear();
  sources(problem_, *choice_, problem_.slots[static_cast<std::size_t>(slot)].value, held_);
  for (const std::int32_t held : held_) set(held, After::Keep);
}

std::int32_t Moves::pick_alike(std::int32_t slot) {
  const std::vector<std::int32_t>& alike = slots_like(slot);
  return alike[random_.below(alike.size())];
}

const std::vector<std::int32_t>& Moves::slots_like(std::int32_t slot) const {
  return like_.slots[static_cast<std::size_t>(like_.kind[static_cast<std::size_t>(slot)])];
}

// What is done in one block is done in another one of its kind, as far as they are the same.
void Moves::copy_block() {
  const std::int32_t from = pick();
  const std::int32_t to = pick_alike(from);
  if (from == to) return change(from);
  const auto count = static_cast<std::int32_t>(problem_.slots.size());
  const auto most = std::min(static_cast<std::int32_t>(2 + random_.below(24)), count - std::max(from, to));
  for (std::int32_t i = 0; i < most; ++i) {
    const auto a = static_cast<std::size_t>(from) + static_cast<std::size_t>(i);
    const auto b = static_cast<std::size_t>(to) + static_cast<std::size_t>(i);
    if (like_.kind[a] != like_.kind[b]) break;
    set(to + i, get(from + i));
    const std::int32_t v = problem_.slots[b].value;
    if (choice_->again[static_cast<std::size_t>(problem_.slots[a].value)] !=
        choice_->again[static_cast<std::size_t>(v)])
      change_again(v);
  }
}

// Several neighbours in the same place of their blocks are treated alike.
void Moves::treat_alike() {
  const std::int32_t slot = pick();
  const std::vector<std::int32_t>& alike = slots_like(slot);
  const auto at = static_cast<std::size_t>(std::lower_bound(alike.begin(), alike.end(), slot) - alike.begin());
  change(slot);
  const After after = get(slot);
  const std::size_t end = std::min(alike.size(), at + 2 + random_.below(6));
  for (std::size_t i = at; i < end; ++i) set(alike[i], after);
}

void Moves::move(std::int32_t peak_at) {
  if (random_.part() < kBlocks) return random_.part() < 0.6 ? copy_block() : treat_alike();
  const double kind = random_.part();
  if (kind < kGuided) {
    if (peak_at >= 0 && random_.part() < 0.6) return change(pick_at(peak_at, true));
    if (random_.part() < 0.3) return drop_and_hold();
    return random_.part() < 0.7 ? exchange() : exchange_for_several();
  }
  const double other = (kind - kGuided) / (1 - kGuided);
  const std::int32_t slot = pick();
  const auto count = static_cast<std::int32_t>(problem_.slots.size());
  if (other < 0.4) return change(slot);
  if (other < 0.5) return change_again(problem_.slots[static_cast<std::size_t>(slot)].value);
  if (other < 0.65) return change(slot), change(pick());
  if (other < 0.85) return swap(slot, parent(slot));
  if (other < 0.93) {
    const std::int32_t near = slot + static_cast<std::int32_t>(random_.below(9)) - 4;
    return swap(slot, std::clamp(near, 0, count - 1));
  }
  const auto length = static_cast<std::int32_t>(2 + random_.below(10));
  const auto after = static_cast<After>(random_.below(3));
  for (std::int32_t i = slot; i < std::min(count, slot + length); ++i) set(i, after);
}

void Moves::take_back() {
  for (std::size_t i = undo_.size(); i-- > 0;) {
    const Undo& it = undo_[i];
    if (it.again)
      choice_->again[static_cast<std::size_t>(it.at)] = it.was;
    else
      choice_->after[static_cast<std::size_t>(it.at)] = static_cast<After>(it.was);
  }
}

}  // namespace ullage::plan
