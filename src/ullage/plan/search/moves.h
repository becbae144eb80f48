// SPDX-License-Identifier: Apache-2.0
#pragma once

// The random changes that simulated annealing tries on a choice. Each changes one value or several, and can be undone.

#include "ullage/plan/problem/likeness.h"
#include "ullage/plan/problem/timeline.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ullage::plan {

// A generator with the same numbers on every machine: splitmix64 (Steele, Lea, Flood, Fast splittable pseudorandom
// number generators, 2014).
class Random final {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double part() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

class Moves final {
 public:
  // Deterministic for a seed. Unless `copies`, no move adds a spill. The problem must outlive it.
  Moves(const Problem& problem, std::uint64_t seed, bool copies);

  // Changes `choice` at random. `peak_at`: the position of the peak if that is over the budget, else none.
  void make(Choice& choice, PositionIndex peak_at);
  void take_back();  // undoes the last make(); its choice must still exist
  double part() { return random_.part(); }

 private:
  struct Undo {
    SlotIndex slot = kNone;    // changed in Choice::after
    MovedIndex value = kNone;  // changed in Choice::again, unless none
    std::uint8_t was = 0;
  };

  SlotIndex pick();
  SlotIndex pick_at(PositionIndex position, bool kept);
  SlotIndex pick_away();
  SlotIndex pick_alike(SlotIndex slot);
  SlotIndex parent(SlotIndex slot);
  bool covers(SlotIndex slot, PositionIndex position) const;
  PositionIndex position_in(SlotIndex slot);
  std::int64_t bytes_of(SlotIndex slot) const;
  const std::vector<SlotIndex>& slots_like(SlotIndex slot) const;

  After get(SlotIndex slot) const { return choice_->after[slot]; }
  void set(SlotIndex slot, After after);
  void set_with_siblings(SlotIndex slot, After after);
  void change(SlotIndex slot);
  void change_again(MovedIndex value);
  void swap(SlotIndex a, SlotIndex b);
  void exchange();
  void exchange_for_several();
  void drop_and_hold();
  void copy_block();
  void treat_alike();
  void move(PositionIndex peak_at);

  const Problem& problem_;
  Random random_;
  bool copies_;
  Likeness like_;
  Choice* choice_ = nullptr;          // the one that make() got last
  Table<SlotIndex, double> weights_;  // cumulative: for pick(), which favours large values
  Table<MovedIndex, SlotIndex> last_slot_;
  std::vector<Undo> undo_;
  std::vector<SlotIndex> held_;
};

}  // namespace ullage::plan
