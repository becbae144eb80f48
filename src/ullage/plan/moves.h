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

  // `peak_at`: the position at which the level is over the budget most; -1: nowhere.
  void make(Choice& choice, std::int32_t peak_at);
  void take_back();  // the last one
  double part() { return random_.part(); }

 private:
  struct Undo {
    bool again = false;
    std::int32_t at = 0;
    std::uint8_t was = 0;
  };

  std::int32_t pick();
  std::int32_t pick_at(std::int32_t position, bool kept);
  std::int32_t pick_away();
  std::int32_t pick_alike(std::int32_t slot);
  std::int32_t parent(std::int32_t slot);
  bool covers(std::int32_t slot, std::int32_t position) const;
  std::int32_t position_in(std::int32_t slot);
  std::int64_t bytes_of(std::int32_t slot) const;
  const std::vector<std::int32_t>& slots_like(std::int32_t slot) const;

  After get(std::int32_t slot) const { return choice_->after[static_cast<std::size_t>(slot)]; }
  void set(std::int32_t slot, After after);
  void set_with_siblings(std::int32_t slot, After after);
  void change(std::int32_t slot);
  void change_again(std::int32_t value);
  void swap(std::int32_t a, std::int32_t b);
  void exchange();
  void exchange_for_several();
  void drop_and_hold();
  void copy_block();
  void treat_alike();
  void move(std::int32_t peak_at);

  const Problem& problem_;
  Random random_;
  bool copies_;
  Likeness like_;
  Choice* choice_ = nullptr;  // at hand
  std::vector<double> weights_;
  std::vector<std::int32_t> main_slot_;  // of each value: its last slot
  std::vector<Undo> undo_;
  std::vector<std::int32_t> held_;
};

}  // namespace ullage::plan
