// SPDX-License-Identifier: Apache-2.0
#pragma once

// A step made ready for the search: what may be moved, by which ways it comes back, and where one may choose. Flat
// arrays of small numbers, because the search simulates them thousands of times; bytes are int64 and unchecked here.
//
// Storages of which nothing can be chosen are summed up in `base` and `need`; runs of ops that touch none of the others
// are one position. Values of the others are numbered anew, in the order in which they are made.

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

// What is done with a value after one of its uses.
enum class After : std::uint8_t { Keep, Drop, Spill };

struct Problem {
  struct Moved {  // a value
    ValueIndex value;
    std::int64_t bytes = 0;
    RecipeIndex recompute = kNone;
    RecipeIndex batch_norm = kNone;
    PositionIndex restore_until = kNone;  // up to which a spilled copy can come back
    bool pinned = false;  // stays where it is while the program has it: too small to have pages of its own
    bool from_before = false;
    // The slot whose Spill sends its storage away from step to step: of its first and of its last value.
    SlotIndex carried_by = kNone;
    SlotIndex main_slot = kNone;  // after its last use before a long pause: most often the last one of a forward pass
    SlotIndex last_slot = kNone;  // after the program's last use of it
  };
  struct Recipe {
    OpIndex op{};
    bool batch_norm = false;
    double seconds = 0;
    std::int64_t rise = 0;
    OpIndex until{};             // the last one before which it can run: then something that it reads is overwritten
    IdRange<ListIndex> reads{};  // the newest first (see timeline.cpp)
    IdRange<MadeIndex> makes{};
  };
  struct Made {
    MovedIndex value{};
    MovedIndex over = kNone;  // that it overwrites
  };
  struct Slot {
    MovedIndex value{};
    PositionIndex position{};
    bool drop = false;      // may be dropped here
    bool spill = false;     // may be spilled here
    bool must_go = false;   // may not be held
    bool last = false;      // the program has no more use for it: Keep is to hold it
    PositionIndex until{};  // that uses it next, or could want it last
    After plain = After::Keep;
  };
  struct Position {
    OpIndex op = kNone;     // none: ops that touch no moved value
    std::int64_t base = 0;  // level when the op begins, of what is not moved
    std::int64_t need = 0;  // most of it while it runs
    IdRange<ListIndex> reads{};
    IdRange<MadeIndex> makes{};
    IdRange<SlotIndex> slots{};
    IdRange<ListIndex> frees{};  // values whose storages the program frees next
    bool frees_late = false;     // and first something is born: they are there at the next position too
  };

  const Step* step = nullptr;
  Levers levers;
  double write_seconds = 0;  // a byte
  double read_seconds = 0;
  double each_seconds = 0;  // of each action that moves a value
  double dearest = 1;       // what moving everything could cost, in steps, at least one
  Table<MovedIndex, Moved> values;
  Table<RecipeIndex, Recipe> recipes;
  Table<PositionIndex, Position> positions;  // the last one is the end of the step
  Table<PositionIndex, OpIndex> tops;        // where most of Position::need is
  Table<SlotIndex, Slot> slots;
  Table<ListIndex, MovedIndex> lists;
  Table<MadeIndex, Made> made;
  Table<StorageIndex, GapIndex> dies;  // in which the program frees it, or kNone
};

// What is chosen. `again`: of each value, once it was made again it is let go of after the op that needed it.
struct Choice {
  Table<SlotIndex, After> after;
  Table<MovedIndex, std::uint8_t> again;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// `hot`: only values that could be away while plain execution has more bytes present than these are looked at.
Problem problem_of(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

// What the program does by itself: nothing is made again.
Choice plain_choice(const Problem& problem);

// The last slots of values that would have to be held so that `value` can be made again without more recomputes than it
// takes from what is there anyway.
void sources(const Problem& problem, const Choice& choice, MovedIndex value, std::vector<SlotIndex>& slots);

}  // namespace ullage::plan
