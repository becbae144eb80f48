// SPDX-License-Identifier: Apache-2.0
#pragma once

// A step made ready for the search: what may be moved, by which ways it comes back, and where one may choose. Flat
// arrays of small numbers, because the search simulates them thousands of times; bytes are int64 and unchecked here.
//
// Storages of which nothing can be chosen are summed up in `base` and `need`; runs of ops that touch none of the others
// are one position. Values of the others are numbered anew, in the order in which they are made.

#include "ullage/plan/plan.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace ullage::plan {

// A part of an array.
struct Range {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

// What is done with a value after one of its uses.
enum class After : std::uint8_t { Keep, Drop, Spill };

struct Problem {
  struct Moved {  // a value
    ValueIndex value;
    std::int64_t bytes = 0;
    std::int32_t rerun = -1;          // index into `recipes`
    std::int32_t apply = -1;          // likewise
    std::int32_t restore_until = -1;  // the position up to which a spilled copy can come back
    bool pinned = false;              // stays where it is while the program has it: too small to have pages of its own
    bool from_before = false;
    // The slot whose Spill sends its storage away from step to step: of its first and of its last value.
    std::int32_t carried_by = -1;
    std::int32_t main_slot = -1;  // after its last use before a long pause: most often the last one of a forward pass
    std::int32_t last_slot = -1;  // after the program's last use of it
  };
  struct Recipe {
    OpIndex op{};
    bool apply = false;
    double seconds = 0;
    std::int64_t rise = 0;
    std::int32_t until = 0;  // the last op before which it can run: then something that it reads is overwritten
    Range reads{};           // into `lists`: values, the newest first (see timeline.cpp)
    Range makes{};           // into `made`
  };
  struct Made {
    std::int32_t value = 0;
    std::int32_t over = -1;  // the value that it overwrites
  };
  struct Slot {
    std::int32_t value = 0;
    std::int32_t position = 0;
    bool drop = false;       // may be dropped here
    bool spill = false;      // may be spilled here
    bool must_go = false;    // may not be held
    bool last = false;       // the program has no more use for it: Keep is to hold it
    std::int32_t until = 0;  // the position that uses it next, or could want it last
    After plain = After::Keep;
  };
  struct Position {
    std::int32_t op = -1;     // nothing: ops that touch no moved value
    std::int64_t base = 0;    // level when the op begins, of what is not moved
    std::int64_t need = 0;    // most of it while it runs
    std::int32_t top = 0;     // the op with most of it
    Range reads{};            // into `lists`
    Range makes{};            // into `made`
    Range slots{};            // into `slots`
    Range frees{};            // into `lists`: values whose storages the program frees next
    bool frees_late = false;  // and first something is born: they are there at the next position too
  };

  const Step* step = nullptr;
  Levers levers;
  double write_seconds = 0;  // a byte
  double read_seconds = 0;
  double each_seconds = 0;  // of each action that moves a value
  double dearest = 1;       // what moving everything could cost, in steps, at least one
  std::vector<Moved> values;
  std::vector<Recipe> recipes;
  std::vector<Position> positions;  // the last one is the end of the step
  std::vector<Slot> slots;
  std::vector<std::int32_t> lists;
  std::vector<Made> made;
  std::vector<std::uint64_t> dies;  // of each storage of the step: the gap in which the program frees it, or UINT64_MAX
};

// What is chosen. `again`: of each value, once it was made again it is let go of after the op that needed it.
struct Choice {
  std::vector<After> after;  // of each slot
  std::vector<std::uint8_t> again;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// `hot`: only values that could be away while plain execution has more bytes present than these are looked at.
Problem problem_of(const Step& step, const Levers& levers, const Rates& rates, Bytes hot);

// What the program does by itself: nothing is made again.
Choice plain_choice(const Problem& problem);

// The last slots of values that would have to be held so that `value` can be made again without more reruns than it
// takes from what is there anyway.
void sources(const Problem& problem, const Choice& choice, std::int32_t value, std::vector<std::int32_t>& slots);

}  // namespace ullage::plan
