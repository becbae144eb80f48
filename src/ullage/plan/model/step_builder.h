// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the events of one step and writes down its storages, values, ops and gaps. What of it can be had again, and the
// figures of the whole, are others' (recomputes.h, step_figures.h).

#include "ullage/plan/model/step.h"
#include "ullage/plan/model/step_range.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

// More at once is no program's. It keeps all sums of a step far below 2^64.
inline constexpr Bytes kMostAtOnce{1ull << 44};

struct BuiltStep {
  Step step;  // without recompute, batch_norm, unread and the figures from `peak` on, but with the seconds of its ops
  // Of what stands in StepOp::rise, what the op itself takes: other threads may allocate meanwhile.
  Table<OpIndex, Bytes> own_rise;
  Table<OpIndex, bool> hides_own;  // among StepOp::hides are storages of the op itself
  // Ops of other threads write to it: what it holds at an op is not known.
  Table<StorageIndex, bool> written_elsewhere;
};

// `range` and `meaning` are of index.take. BadFile, with the event, where the take contradicts itself: what is used
// does not live, what lives is born again. Storages below `least_movable` have no pages of their own.
Result<BuiltStep> build_step(const trace::TakeIndex& index, const trace::TakeMeaning& meaning, const StepRange& range,
                             Bytes least_movable);

}  // namespace ullage::plan
