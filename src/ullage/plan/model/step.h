// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of a program as the planner sees it: ops in order, the values they read and make, and what the program does
// between them. The same sequence comes again, step after step.
//
// A value is what the bytes of a storage are between two writes. An op that writes in place ends one value of a storage
// and begins the next:
//
//   conv            batch_norm        relu_                      storage 1: value 1
//   makes value 1   makes value 2     overwrites 2, makes 3      storage 2: values 2, 3
//
// The timeline, under a plan too:
//
//   gap 0 | before 0, op 0, after 0 | gap 1 | before 1, op 1, after 1 | gap 2 | ... | gap n
//
// In a gap the program makes and frees storages with no op; "before" and "after" are where a plan acts (schedule.h).
// Only ops of one thread, the one that trains, are in it. What storages of other threads hold counts, but is not moved.

#include "ullage/base/bytes.h"
#include "ullage/base/table.h"
#include "ullage/trace/meaning/owners.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

using OpIndex = Id<struct PlanOpTag>;            // index into Step::ops
using ValueIndex = Id<struct PlanValueTag>;      // index into Step::values
using StorageIndex = Id<struct PlanStorageTag>;  // index into Step::storages
using GapIndex = Id<struct PlanGapTag>;          // index into Step::gaps

// No op, no gap, none of any kind: behind all others, or before them where the kind has a sign.
struct None {
  template <class Tag, class Number>
  constexpr operator Id<Tag, Number>() const {
    return {static_cast<Number>(-1)};
  }
};
inline constexpr None kNone;

// Of the last gap the op behind it is one behind the last; of the first gap there is no op before it.
constexpr GapIndex gap_before(OpIndex op) { return {op.value}; }
constexpr GapIndex gap_after(OpIndex op) { return {op.value + 1}; }
constexpr OpIndex op_before(GapIndex gap) { return {gap.value - 1}; }
constexpr OpIndex op_after(GapIndex gap) { return {gap.value}; }

struct StepStorage {
  StorageId in_take;
  Bytes bytes;       // asked for
  std::string name;  // for people: "netG.main.6.weight", else the op and layer that made it
  trace::Category category = trace::Category::Unattributed;
  bool from_before = false;  // alive when the step begins
  bool outlives = false;     // alive when it ends; with from_before: the same storage in every step
  bool movable = false;      // has pages of its own (StandsOn::least_movable) and belongs to ops of this step's thread
};

struct Value {
  StorageIndex storage;
  OpIndex maker = kNone;           // none: it was there when the step began, or no op of the step made it
  OpIndex overwritten_by = kNone;  // none: it stays until its storage dies, or beyond the step
};

// One way of having what an op made again.
struct Recompute {
  std::vector<ValueIndex> reads;  // each once
  Seconds took;
  Bytes rise;  // as StepOp::rise
};

struct StepOp {
  std::string name;       // "aten::convolution"
  std::uint64_t key = 0;  // site_key.h
  OpId in_take;
  trace::Phase phase = trace::Phase::Unknown;
  Seconds took;
  // By how many bytes the pool stands above the op's begin while it runs, at most: outputs, and scratch, also that
  // outside the pool of which it is told (trace::Charged). What it frees of others' storages is not taken off.
  Bytes rise;
  // Of the distinct storages among its arguments, in their order, the value each has when the op begins; those that it
  // overwrites too.
  std::vector<ValueIndex> reads;
  // First one for each storage among the arguments that it writes, in their order: `overwrites` of them, each with its
  // predecessor among `reads`. Then one for each storage that is new among what it returns, in that order.
  std::vector<ValueIndex> makes;
  std::size_t overwrites = 0;
  // Born in it and alive when it ends, but not returned (by other threads, too): nobody can move them.
  std::vector<StorageIndex> hides;
  // Indices into `reads`: passed to the op but never looked at (arguments.h: the input of a convolution whose weight
  // gets no gradient; what a view is made of). They need not be there.
  std::vector<std::uint32_t> unread;

  // Can the op be run again, bit for bit, with nothing else changed (recompute_rules.h)? Then all that it makes comes
  // again, in place of what it overwrites; what it reads must be there.
  std::optional<Recompute> recompute;
  // Of a batch norm in training: makes[0] alone, from its input and the statistics it saved, in one pass.
  std::optional<Recompute> batch_norm;
};

struct GapEvent {
  StorageIndex storage;
  bool born = false;  // else it dies
};

struct Step {
  Table<StorageIndex, StepStorage> storages;
  Table<ValueIndex, Value> values;
  Table<OpIndex, StepOp> ops;
  Table<GapIndex, std::vector<GapEvent>> gaps;  // one more than ops
  // When it begins: all storages from before. Those that are small and neither used nor freed are not in `storages`.
  Bytes level;
  Bytes peak;       // of plain execution, bytes asked for
  Bytes overhead;   // by how much the pool's resident bytes passed the bytes asked for, at most: pages, slabs
  Bytes outside;    // what a run keeps free for the process beside the pool; zero: not known
  Bytes saved;      // most bytes that autograd kept at once, of storages that this step's forward passes made
  Seconds seconds;  // from its begin to its end
  Seconds in_ops;   // of that, in its ops
};

}  // namespace ullage::plan
