// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/moves.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace ullage::plan {
namespace {

// The share of guided moves among those that kBlocks leaves. A guided move changes a value that is kept at the peak,
// drops a value and holds its sources, or exchanges values. The others change slots that are picked at random.
constexpr double kGuided = 0.4;
// The share of all moves that treat repeated blocks alike.
constexpr double kBlocks = 0.3;
// How many more values are tried in exchange for one.
constexpr int kMostMore = 4;
// How many random slots are tried to find a fitting one.
constexpr int kTries = 16;

}  // namespace

Moves::Moves(const Problem& problem, std::uint64_t seed, bool copies)
    : problem_(problem),
      random_(seed),
      copies_(copies),
      like_(likeness_of(problem)),
      last_slot_(problem.values.size(), kNone) {
  double sum = 0;
  weights_.reserve(problem.slots.size());
  for (const SlotIndex i : problem.slots.ids()) {
    const Problem::Slot& slot = problem.slots[i];
    sum += std::sqrt(static_cast<double>(problem.values[slot.value].bytes));
    weights_.push_back(sum);
    last_slot_[slot.value] = i;
  }
}

void Moves::make(Choice& choice, PositionIndex peak_at) {
  choice_ = &choice;
  undo_.clear();
  move(peak_at);
}

SlotIndex Moves::pick() {
  const double at = random_.part() * weights_.back();
  const SlotIndex found = weights_.id_of(std::upper_bound(weights_.begin(), weights_.end(), at));
  return std::min(found, weights_.next_id().previous());
}

void Moves::set(SlotIndex slot, After after) {
  const Problem::Slot& it = problem_.slots[slot];
  if ((after == After::Drop && !it.drop) || (after == After::Spill && !(it.spill && copies_))) return;
  After& now = choice_->after[slot];
  undo_.push_back({.slot = slot, .was = static_cast<std::uint8_t>(now)});
  now = after;
}

// Sets the slot to another allowed action.
void Moves::change(SlotIndex slot) {
  const Problem::Slot& it = problem_.slots[slot];
  After others[2];
  std::size_t count = 0;
  for (const After after : {After::Keep, After::Drop, After::Spill}) {
    const bool allowed = after == After::Keep || (after == After::Drop ? it.drop : it.spill && copies_);
    if (allowed && after != get(slot)) others[count++] = after;
  }
  if (count > 0) set(slot, others[random_.below(count)]);
}

void Moves::change_again(MovedIndex value) {
  std::uint8_t& again = choice_->again[value];
  undo_.push_back({.value = value, .was = again});
  again ^= 1;
}

void Moves::swap(SlotIndex a, SlotIndex b) {
  const After was_a = get(a);
  const After was_b = get(b);
  if (was_a == was_b) return change(a);
  set(a, was_b);
  set(b, was_a);
}

// Returns the last slot of a value from which the value of `slot` is made, up to four recomputes back; `slot` if there
// is none.
SlotIndex Moves::parent(SlotIndex slot) {
  MovedIndex value = problem_.slots[slot].value;
  SlotIndex found = slot;
  for (int depth = 0; depth < 4; ++depth) {
    const Problem::Moved& it = problem_.values[value];
    const RecipeIndex way = it.recompute != kNone ? it.recompute : it.batch_norm;
    if (way == kNone) break;
    const std::span reads = problem_.lists[problem_.recipes[way].reads];
    if (reads.empty()) break;
    value = reads[random_.below(reads.size())];
    if (last_slot_[value] != kNone) found = last_slot_[value];
    if (random_.part() < 0.5 && found != slot) break;
  }
  return found;
}

bool Moves::covers(SlotIndex slot, PositionIndex position) const {
  const Problem::Slot& it = problem_.slots[slot];
  return it.position < position && position <= it.until;
}

// Picks a slot that covers the position and is kept (if `kept`) or not kept; any slot if kTries find none.
SlotIndex Moves::pick_at(PositionIndex position, bool kept) {
  SlotIndex slot = pick();
  for (int i = 0; i < kTries && !(covers(slot, position) && (get(slot) == After::Keep) == kept); ++i) slot = pick();
  return slot;
}

SlotIndex Moves::pick_away() {
  SlotIndex slot = pick();
  for (int i = 0; i < kTries && (get(slot) == After::Keep || problem_.slots[slot].last); ++i) slot = pick();
  return slot;
}

std::int64_t Moves::bytes_of(SlotIndex slot) const {
  const MovedIndex value = problem_.slots[slot].value;
  return problem_.values[value].bytes;
}

PositionIndex Moves::position_in(SlotIndex slot) {
  const Problem::Slot& it = problem_.slots[slot];
  const auto length = static_cast<std::size_t>(std::max(1, it.until.value - it.position.value));
  return {it.position.value + 1 + static_cast<std::int32_t>(random_.below(length))};
}

// Sets the slot, and the main slots of the other values that the same op makes. One recompute brings back all of them,
// so dropping pays for all or for none.
void Moves::set_with_siblings(SlotIndex slot, After after) {
  set(slot, after);
  const MovedIndex value = problem_.slots[slot].value;
  const RecipeIndex way = problem_.values[value].recompute;
  if (way == kNone) return;
  for (const Problem::Made& made : problem_.made[problem_.recipes[way].makes]) {
    const SlotIndex sibling = problem_.values[made.value].main_slot;
    if (made.value != value && sibling != kNone) set(sibling, after);
  }
}

// Keeps a value that was away, and evicts another one instead, or several with as many bytes.
void Moves::exchange() {
  const SlotIndex back = pick_away();
  const PositionIndex at = position_in(back);
  const SlotIndex away = pick_at(at, true);
  set_with_siblings(back, After::Keep);
  if (away == back) return;
  change(away);
  std::int64_t room = bytes_of(back) - bytes_of(away);
  for (int i = 0; i < kMostMore && room > 0; ++i) {
    const SlotIndex more = pick_at(at, true);
    if (more == back || get(more) != After::Keep) continue;
    room -= bytes_of(more);
    change(more);
  }
}

// Evicts a value, and keeps instead several that were away, with as many bytes together.
void Moves::exchange_for_several() {
  const SlotIndex away = pick();
  if (get(away) != After::Keep) return exchange();
  const PositionIndex at = position_in(away);
  change(away);
  std::int64_t room = bytes_of(away);
  for (int i = 0; i < kMostMore && room > 0; ++i) {
    const SlotIndex back = pick_at(at, false);
    if (back == away || get(back) == After::Keep || bytes_of(back) > room) continue;
    room -= bytes_of(back);
    set_with_siblings(back, After::Keep);
  }
}

// Drops a value and holds the values that it is recomputed from.
void Moves::drop_and_hold() {
  const SlotIndex slot = pick();
  set_with_siblings(slot, After::Drop);
  held_.clear();
  sources(problem_, *choice_, problem_.slots[slot].value, held_);
  for (const SlotIndex held : held_) set(held, After::Keep);
}

SlotIndex Moves::pick_alike(SlotIndex slot) {
  const std::vector<SlotIndex>& alike = slots_like(slot);
  return alike[random_.below(alike.size())];
}

const std::vector<SlotIndex>& Moves::slots_like(SlotIndex slot) const { return like_.slots[like_.kind[slot]]; }

// Copies the choice for one block to another one of its kind, as far as their slots correspond.
void Moves::copy_block() {
  const SlotIndex from = pick();
  const SlotIndex to = pick_alike(from);
  if (from == to) return change(from);
  const auto count = static_cast<std::int32_t>(problem_.slots.size());
  const auto most = std::min(static_cast<std::int32_t>(2 + random_.below(24)), count - std::max(from, to).value);
  for (std::int32_t i = 0; i < most; ++i) {
    const SlotIndex a{from.value + i};
    const SlotIndex b{to.value + i};
    if (like_.kind[a] != like_.kind[b]) break;
    set(b, get(a));
    const MovedIndex v = problem_.slots[b].value;
    if (choice_->again[problem_.slots[a].value] != choice_->again[v]) change_again(v);
  }
}

// Changes a slot, and gives the same action to the slots in the same place of the next few blocks.
void Moves::treat_alike() {
  const SlotIndex slot = pick();
  const std::vector<SlotIndex>& alike = slots_like(slot);
  const auto at = static_cast<std::size_t>(std::lower_bound(alike.begin(), alike.end(), slot) - alike.begin());
  change(slot);
  const After after = get(slot);
  const std::size_t end = std::min(alike.size(), at + 2 + random_.below(6));
  for (std::size_t i = at; i < end; ++i) set(alike[i], after);
}

void Moves::move(PositionIndex peak_at) {
  if (random_.part() < kBlocks) return random_.part() < 0.6 ? copy_block() : treat_alike();
  const double kind = random_.part();
  if (kind < kGuided) {
    if (peak_at != kNone && random_.part() < 0.6) return change(pick_at(peak_at, true));
    if (random_.part() < 0.3) return drop_and_hold();
    return random_.part() < 0.7 ? exchange() : exchange_for_several();
  }
  const double other = (kind - kGuided) / (1 - kGuided);
  const SlotIndex slot = pick();
  const auto count = static_cast<std::int32_t>(problem_.slots.size());
  if (other < 0.4) return change(slot);
  if (other < 0.5) return change_again(problem_.slots[slot].value);
  if (other < 0.65) return change(slot), change(pick());
  if (other < 0.85) return swap(slot, parent(slot));
  if (other < 0.93) {
    const SlotIndex near{slot.value + static_cast<std::int32_t>(random_.below(9)) - 4};
    return swap(slot, std::clamp(near, SlotIndex{0}, SlotIndex{count - 1}));
  }
  const auto length = static_cast<std::int32_t>(2 + random_.below(10));
  const auto after = static_cast<After>(random_.below(3));
  for (SlotIndex i = slot; i.value < std::min(count, slot.value + length); i = i.next()) set(i, after);
}

void Moves::take_back() {
  for (std::size_t i = undo_.size(); i-- > 0;) {
    const Undo& it = undo_[i];
    if (it.value != kNone)
      choice_->again[it.value] = it.was;
    else
      choice_->after[it.slot] = static_cast<After>(it.was);
  }
}

}  // namespace ullage::plan
