// SPDX-License-Identifier: Apache-2.0
#pragma once

// A step prepared for the search: which values may be moved, how they come back, and where there is a choice. It has
// flat arrays of small numbers, because the search simulates them thousands of times. Bytes are int64 and unchecked.
//
// Only values of moved storages (moved_storages.h) are listed, in the order in which they are made. All other storages
// are summed up in `base` and `need`. Consecutive ops that touch no listed value share one position.

#include "ullage/plan/model/plan.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace ullage::plan {

using MovedIndex = Id<struct MovedTag, std::int32_t>;        // index into Problem::values
using RecipeIndex = Id<struct RecipeTag, std::int32_t>;      // index into Problem::recipes
using PositionIndex = Id<struct PositionTag, std::int32_t>;  // index into Problem::positions
using SlotIndex = Id<struct SlotTag, std::int32_t>;          // index into Problem::slots
using ListIndex = Id<struct ListTag, std::int32_t>;          // index into Problem::lists
using MadeIndex = Id<struct MadeTag, std::int32_t>;          // index into Problem::made

// The action on a value after one of its uses.
enum class After : std::uint8_t { Keep, Drop, Spill };

struct Problem {
  struct Moved {  // a value
    ValueIndex value;
    std::int64_t bytes = 0;
    RecipeIndex recompute = kNone;
    RecipeIndex batch_norm = kNone;
    PositionIndex restore_until = kNone;  // the last position for which a spilled copy can be restored
    bool pinned = false;       // not movable (StepStorage::movable), so it stays in memory while the program has it
    bool from_before = false;  // the step begins with it: no op of the step makes it
    // The slot whose Spill keeps the storage away from one step to the next. Set for the last value that a step leaves
    // and for the first one that the next step finds.
    SlotIndex carried_by = kNone;
    bool idle = false;            // no op of the step uses it, so it is away all the time
    SlotIndex main_slot = kNone;  // its last slot that is not `last`: mostly after its last use in a forward pass
    SlotIndex last_slot = kNone;  // after the program's last use of it
  };
  struct Recipe {  // a way to recompute
    OpIndex op{};
    bool batch_norm = false;
    double seconds = 0;
    std::int64_t rise = 0;
    OpIndex until{};             // the last op before which it can run: later, something that it reads is gone
    IdRange<ListIndex> reads{};  // the newest first (Timeline::fetch() says why)
    IdRange<MadeIndex> makes{};
  };
  struct Made {
    MovedIndex value{};
    MovedIndex over = kNone;  // the value that it overwrites
  };
  struct Slot {  // a place with a choice: after the use of a value at a position
    MovedIndex value{};
    PositionIndex position{};
    bool drop = false;          // may be dropped here
    bool spill = false;         // may be spilled here
    bool must_go = false;       // may not be held, so that Keep has no effect
    bool last = false;          // the program does not use it any more; Keep means to hold it
    PositionIndex until{};      // its next use, or if `last`, the last position that could need it
    After plain = After::Keep;  // what plain execution does
  };
  struct Position {
    OpIndex op = kNone;     // none: ops that touch no moved value
    std::int64_t base = 0;  // level of what is not moved when the op begins
    std::int64_t need = 0;  // highest level while it runs: of what is not moved, plus the op's rise
    IdRange<ListIndex> reads{};
    IdRange<MadeIndex> makes{};
    IdRange<SlotIndex> slots{};
    IdRange<ListIndex> frees{};  // values whose storages the program frees in the gap after the op
    bool frees_late = false;     // in that gap something is born before a free: `frees` count at the next position too
  };

  const Step* step = nullptr;
  Levers levers;
  double write_seconds = 0;  // per byte
  double read_seconds = 0;   // per byte
  double each_seconds = 0;   // per action that moves a value
  double dearest = 1;        // an upper estimate of what moving everything costs, in multiples of Step::in_ops; >= 1
  Table<MovedIndex, Moved> values;
  Table<RecipeIndex, Recipe> recipes;
  Table<PositionIndex, Position> positions;  // the last one is the end of the step
  Table<PositionIndex, OpIndex> tops;        // the op that sets Position::need
  Table<SlotIndex, Slot> slots;
  Table<ListIndex, MovedIndex> lists;
  Table<MadeIndex, Made> made;
  Table<StorageIndex, GapIndex> dies;  // the gap in which the program frees it, or kNone
};

// A candidate plan. If `again` is set for a value, the value leaves after the op for which it was brought back. A later
// use brings it back again.
struct Choice {
  Table<SlotIndex, After> after;
  Table<MovedIndex, std::uint8_t> again;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Prepares `step`, which must outlive the problem. Considers only values that could be away while plain execution has
// more than `hot` bytes present, and values that recomputing them reads or makes (moved_storages.h).
Problem problem_of(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

// The choice that stands for plain execution: nothing is recomputed or spilled.
Choice plain_choice(const Problem& problem);

// Appends to `slots` the last slots of values to hold, so that `value` can be recomputed cheaply. Follows its recipe
// back, and those of its inputs. It stops at a value that is kept, and at one that costs too much to recompute: that
// one is to be held. Looks at 64 values at most.
void sources(const Problem& problem, const Choice& choice, MovedIndex value, std::vector<SlotIndex>& slots);

}  // namespace ullage::plan
