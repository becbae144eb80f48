// SPDX-License-Identifier: Apache-2.0
#pragma once

// Simulates a choice op by op. Before each op it brings back the values that the op needs and that are away, and first
// the values that their recomputation needs. It gives the peak and the cost. A value counts up to its last use, which
// is known only afterwards, so the levels are summed up at the end.

#include "ullage/plan/problem/problem.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct Outcome {
  // False if something that is needed cannot be brought back, or if there are more than 12 happenings for each
  // position.
  bool possible = false;
  std::int64_t peak = 0;  // most bytes present at once
  PositionIndex peak_at{};
  double over = 0;  // bytes above the budget, summed over all happenings
  double recompute_seconds = 0;
  std::int64_t written = 0;  // bytes
  std::int64_t read = 0;     // bytes
  std::int64_t moves = 0;    // spills, restores, values that recomputes brought back
  double seconds = 0;        // total cost
};

// Is the value's storage spilled while one step ends and the next begins?
bool away(const Problem::Moved& value, const Choice& choice);

using HappeningIndex = Id<struct HappeningTag, std::int32_t>;  // index into Record::happenings, in their order
using StayIndex = Id<struct StayTag, std::int32_t>;            // index into Record::stays

// One event of the simulation: a run of ops that touch nothing moved (Static), an op, a recompute or a restore.
struct Happening {
  enum class What { Static, Op, Recompute, Restore };
  What what = What::Static;
  PositionIndex position{};    // where it happens; a recompute or restore is for the op there
  RecipeIndex recipe = kNone;  // for Recompute
  MovedIndex value = kNone;    // for Restore
  std::int64_t level = 0;      // most bytes present during it
};
// One presence of a value, from after `from` until after `to`. If `to` is Static, the program frees the value there.
struct Stay {
  // Last: it is present when the simulation ends. Overwritten: by an op in place. Chosen: dropped or spilled.
  enum class End { Last, Overwritten, Chosen };
  MovedIndex value{};
  HappeningIndex from{};  // none: since before the step
  HappeningIndex to{};
  End end = End::Last;
  bool written = false;  // the tier has a copy
};
struct Record {  // all that happened in a run, for emit()
  Table<HappeningIndex, Happening> happenings;
  Table<StayIndex, Stay> stays;
};

class Timeline final {
 public:
  explicit Timeline(const Problem& problem);  // `problem` must outlive the timeline

  // Simulates one step. `budget`, in bytes, is used for Outcome::over alone: the simulation does not depend on it.
  Outcome run(const Choice& choice, std::int64_t budget);
  // As above, and fills in `record`.
  Outcome run(const Choice& choice, std::int64_t budget, Record& record);

  // How many happenings all runs together have simulated.
  std::uint64_t effort() const { return effort_; }

 private:
  struct State {
    HappeningIndex from{};
    HappeningIndex to{};
    bool present = false;
    bool written = false;
    bool recomputed = false;   // its last stay began with a recompute
    StayIndex record = kNone;  // its last stay in the record
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
  Table<HappeningIndex, std::int64_t> change_;  // of the level of moved values, when the happening begins
  Table<HappeningIndex, std::int64_t> need_;    // bytes besides moved values
  Table<HappeningIndex, PositionIndex> where_;
  std::vector<MovedIndex> recomputed_;  // recomputed or restored for the current op
  HappeningIndex now_ = kNone;
  PositionIndex position_{};
  OpIndex op_{};
  std::int64_t base_ = 0;
  Outcome outcome_;
  std::uint64_t effort_ = 0;
};

}  // namespace ullage::plan
