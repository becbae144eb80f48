// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the events of one step and builds its storages, values, ops and gaps. recomputes.h and step_figures.h then fill
// in what can be recomputed and the figures of the whole step.

#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/plan/model/step_range.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

// A take with more live bytes than this is refused as damaged, so that no sum of a step comes near 2^64.
inline constexpr Bytes kMostAtOnce{1ull << 44};

struct BuiltStep {
  Step step;  // without recompute, batch_norm and unread of its ops, and without its figures from `peak` on
  // StepOp::rise without what other threads allocate meanwhile.
  Table<OpIndex, Bytes> own_rise;
  Table<OpIndex, bool> hides_own;  // among StepOp::hides are storages of this thread
  // Ops of other threads write to it, so its bytes at an op are not known.
  Table<StorageIndex, bool> written_elsewhere;
};

// `range` and `meaning` are of index.take. BadFile, with the event, if the take contradicts itself: a storage is used
// or freed while it is not alive, or is born twice. Also if more than kMostAtOnce lives, or an op of the step has no
// end.
Result<BuiltStep> build_step(const trace::TakeIndex& index, const trace::TakeMeaning& meaning, const StepRange& range,
                             const StandsOn& on);

struct Birth {
  bool in_take = false;     // the recording has it
  std::uint64_t maker = 0;  // SiteKey of the op during which it was born; zero: none, or not known
};
// Sets StepStorage::becomes and ::was. Pairs the storages that the step leaves with those that it found, in the order
// of birth. First it pairs those of one size that ops of one kind made, then the rest by size alone. If the step leaves
// more or fewer storages of a group than it found, it does not end as it began. Then none of that group is paired. A
// storage from before the recording that outlives the step stays itself and gets no partner. All steps are taken to do
// the same, so a batch that is loaded one step ahead becomes the batch. `births`: by storage; may be empty.
void link_steps(Step& step, const Table<StorageIndex, Birth>& births);

}  // namespace ullage::plan
