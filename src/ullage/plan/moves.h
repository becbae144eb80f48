// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes that a search tries on a choice, each of one or several values, and takes back where they do not help.

#include "ullage/plan/likeness.h"
#include "ullage/plan/random.h"
#include "ullage/plan/timeline.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

class Moves final {
 public:
  // `copies`: may spill. Deterministic for a seed. The problem must outlive it.
  Moves(const Problem& problem, std::uint64_t seed, bool copies);

  // `peak_at`: where the level is over the budget most, if it is.
  void make(Choice& choice, PositionIndex peak_at);
  void take_back();  // the last one
  double part() { return random_.part(); }

 private:
  struct Undo {
    SlotIndex slot = kNone;
    MovedIndex value = kNone;  // else of Choice::again
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
  Choice* choice_ = nullptr;          // at hand
  Table<SlotIndex, double> weights_;  // the sum up to each
  Table<MovedIndex, SlotIndex> last_slot_;
  std::vector<Undo> undo_;
  std::vector<SlotIndex> held_;
};

}  // namespace ullage::plan
