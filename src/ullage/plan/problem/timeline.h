// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a choice comes to: the step is gone through op by op; what an op needs and is not there is brought back first,
// with all that this needs in turn. A value leaves at its last use, which is known only afterwards: so the level is
// summed up at the end.

#include "ullage/plan/problem/problem.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct Outcome {
  bool possible = false;  // else something that is needed cannot be had
  std::int64_t peak = 0;
  PositionIndex peak_at{};
  double over = 0;  // bytes above the budget, summed over the positions
  double recompute_seconds = 0;
  std::int64_t written = 0;
  std::int64_t read = 0;
  std::int64_t moves = 0;  // spills, restores, values that recomputes brought back
  double seconds = 0;      // all that it costs
};

// Is it spilled while one step ends and the next begins?
bool away(const Problem::Moved& value, const Choice& choice);

using HappeningIndex = Id<struct HappeningTag, std::int32_t>;  // index into Record::happenings, in their order
using StayIndex = Id<struct StayTag, std::int32_t>;            // index into Record::stays

// What happened, for the schedule.
struct Happening {
  enum class What { Static, Op, Recompute, Restore };
  What what = What::Static;
  PositionIndex position{};    // at it, or on its behalf
  RecipeIndex recipe = kNone;  // of Recompute
  MovedIndex value = kNone;    // of Restore
  std::int64_t level = 0;      // most bytes present then
};
struct Stay {  // one presence of a value: after `from` until after `to` (Static: until the program frees it there)
  enum class End { Last, Overwritten, Chosen };
  MovedIndex value{};
  HappeningIndex from{};  // none: since before the step
  HappeningIndex to{};
  End end = End::Last;
  bool written = false;  // a copy of it is on the disk
};
struct Record {
  Table<HappeningIndex, Happening> happenings;
  Table<StayIndex, Stay> stays;
};

class Timeline final {
 public:
  explicit Timeline(const Problem& problem);

  Outcome run(const Choice& choice, std::int64_t budget);
  // Likewise, and tells all that happens.
  Outcome run(const Choice& choice, std::int64_t budget, Record& record);

  // How many ops all runs went through.
  std::uint64_t effort() const { return effort_; }

 private:
  struct State {
    HappeningIndex from{};
    HappeningIndex to{};
    bool present = false;
    bool written = false;
    bool recomputed = false;   // its last stay began with a recompute
    StayIndex record = kNone;  // of its last stay
  };

  Outcome go(const Choice& choice, std::int64_t budget);
  void begin(const Choice& choice);
  bool play(const Problem::Position& at, const Choice& choice);
  bool play_end(const Problem::Position& at, const Choice& choice);
  bool fetch(MovedIndex value);
  bool recompute(RecipeIndex recipe);
  bool use(IdRange<ListIndex> reads);
  RecipeIndex way(const Problem::Moved& value) const;
  bool room_for(std::int32_t more) const { return now_.value + more < static_cast<std::int32_t>(need_.size()); }
  void step_to(Happening happening, std::int64_t need);
  void make(const Problem::Made& made, bool by_program);
  void come(MovedIndex value);
  void leave(MovedIndex value, Stay::End end);
  void freed(MovedIndex value, HappeningIndex until);
  void finish(std::int64_t budget, Outcome& outcome);

  const Problem& problem_;
  Record* record_ = nullptr;
  Table<MovedIndex, State> state_;
  Table<HappeningIndex, std::int64_t> change_;  // of the level, when it begins
  Table<HappeningIndex, std::int64_t> need_;    // beside what is moved
  Table<HappeningIndex, PositionIndex> where_;
  std::vector<MovedIndex> recomputed_;  // on behalf of the op at hand
  HappeningIndex now_ = kNone;
  PositionIndex position_{};
  OpIndex op_{};
  std::int64_t base_ = 0;
  Outcome outcome_;
  std::uint64_t effort_ = 0;
};

}  // namespace ullage::plan
