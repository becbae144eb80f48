// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of a program as the planner sees it. It has the ops in order, the values that they read and make, and the
// storages that the program makes and frees between them. A plan assumes that every step repeats this sequence.
//
// A value is the bytes of a storage between two writes. An op that writes in place ends one value of a storage and
// begins the next:
//
//   conv            batch_norm        relu_                      storage 1: value 1
//   makes value 1   makes value 2     overwrites 2, makes 3      storage 2: values 2, 3
//
// The timeline, with or without a plan:
//
//   gap 0 | before 0, op 0, after 0 | gap 1 | before 1, op 1, after 1 | gap 2 | ... | gap n
//
// In a gap the program makes and frees storages outside any op. A storage that was born before an op and is freed while
// the op runs counts as freed in the gap after it. A plan acts "before" and "after" an op (schedule.h). Only ops of the
// thread that trains are listed. Storages of other threads count in the levels and peaks, but no plan moves them.

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

// "None" for any kind of index: -1, cast to the index's number. It compares larger than all indices of an unsigned
// number, and smaller than all of a signed one.
struct None {
  template <class Tag, class Number>
  constexpr operator Id<Tag, Number>() const {
    return {static_cast<Number>(-1)};
  }
};
inline constexpr None kNone;

// op_after() of the last gap is one past the last op. The first gap has no op before it, so do not call op_before().
constexpr GapIndex gap_before(OpIndex op) { return {op.value}; }
constexpr GapIndex gap_after(OpIndex op) { return {op.value + 1}; }
constexpr OpIndex op_before(GapIndex gap) { return {gap.value - 1}; }
constexpr OpIndex op_after(GapIndex gap) { return {gap.value}; }

struct StepStorage {
  StorageId in_take;
  Bytes bytes;       // asked for; zero if it is so small that the pool does not serve it (StandsOn::least_in_pool)
  std::string name;  // for people: "netG.main.6.weight", else the op and layer that made it
  trace::Category category = trace::Category::Unattributed;
  bool from_before = false;  // alive when the step begins
  bool outlives = false;     // alive when the step ends. If from_before too, every step has it (a weight)
  // A plan may move it: it has pages of its own (StandsOn::least_movable), and is not hidden (StepOp::hides). No op of
  // another thread made it or uses it in this step.
  bool movable = false;
  // A step may leave a storage to the next step, which lists it as another one of its storages. For example, a step
  // makes storage 7 for its loss and keeps it. The next step begins with the old loss as its storage 0, frees it, and
  // makes a new storage 7. Then `becomes` of 7 is 0, and `was` of 0 is 7. None: not known, or the same storage
  // (in_next_step()).
  StorageIndex becomes = kNone, was = kNone;
};

struct Value {
  StorageIndex storage;
  OpIndex maker = kNone;           // none if no op of the step returned or wrote it
  OpIndex overwritten_by = kNone;  // none if it lasts until its storage dies, or beyond the step
};

// One way to recompute what an op made.
struct Recompute {
  std::vector<ValueIndex> reads;  // each once
  Seconds took;
  Bytes rise;  // as StepOp::rise, but without what other threads allocate and free meanwhile
};

struct StepOp {
  std::string name;       // "aten::convolution"
  std::uint64_t key = 0;  // site_key.h
  OpId in_take;
  trace::Phase phase = trace::Phase::Unknown;
  Seconds took;
  // How far the level rises, at most, above its value at the op's begin while the op runs. Counts outputs and scratch,
  // and scratch outside the pool that is charged (trace::Charged). Frees of storages born before the op do not lower
  // it.
  Bytes rise;
  // For each distinct storage among its arguments, in their order, the value that it has when the op begins. Contains
  // the values that the op overwrites.
  std::vector<ValueIndex> reads;
  // The first `overwrites` entries are the new values of the arguments that the op writes, in the order of these
  // arguments in `reads`. An entry and the value that it replaces have the same storage. The other entries are the
  // values of the new storages among the op's results, in their order.
  std::vector<ValueIndex> makes;
  std::size_t overwrites = 0;
  // Hidden storages: born during the op (also by other threads), alive when it ends, and not returned, such as a cache
  // that the op fills. They are not movable.
  std::vector<StorageIndex> hides;
  // Indices into `reads` of arguments that the op does not read (arguments.h). Examples are the input of a convolution
  // whose weight gets no gradient, and the argument of a view. These may stay evicted while the op runs.
  std::vector<std::uint32_t> unread;

  // Set if the op can be recomputed with the same bits and without other effects (recomputes.h). A recompute makes all
  // of `makes`. An op in place also has the value that it overwrites among the reads of `recompute`.
  std::optional<Recompute> recompute;
  // Set for a batch norm in training: recomputes makes[0] alone, in one pass, from its input and its saved statistics.
  std::optional<Recompute> batch_norm;
};

struct GapEvent {
  StorageIndex storage;
  bool born = false;  // born if true, else freed
};

struct Step {
  Table<StorageIndex, StepStorage> storages;
  Table<ValueIndex, Value> values;
  Table<OpIndex, StepOp> ops;
  Table<GapIndex, std::vector<GapEvent>> gaps;  // one more than ops
  // Live bytes when the step begins. Includes storages that are not in `storages`: those too small to move that the
  // step neither uses nor frees.
  Bytes level;
  Bytes peak;       // of plain execution, in bytes asked for
  Bytes overhead;   // the pool's peak of resident bytes less its peak of bytes asked for, simulated: pages and slabs
  Bytes outside;    // the most that the recorded process held or reserved outside the pool; zero if unknown
  Bytes saved;      // most bytes that autograd kept at once, of storages that this step's forward ops made
  Seconds seconds;  // from its begin to its end
  Seconds in_ops;   // the part of that in its ops

  // The storage that `one` is when the next step begins, and that it was when the last step ended. None: not known.
  StorageIndex in_next_step(StorageIndex one) const {
    const StepStorage& it = storages[one];
    return it.becomes == kNone && it.from_before && it.outlives ? one : it.becomes;
  }
  StorageIndex in_last_step(StorageIndex one) const {
    const StepStorage& it = storages[one];
    return it.was == kNone && it.from_before && it.outlives ? one : it.was;
  }
};

}  // namespace ullage::plan
