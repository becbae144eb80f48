// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of a take before anything is made of it: its events, the thread that trains, that thread's ops.

#include "ullage/base/result.h"
#include "ullage/plan/model/step.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct StepRange {
  EventId begin, end;        // half-open
  std::uint32_t thread = 0;  // that runs the backward pass; where there is none, most ops
  Table<OpIndex, OpId> ops;  // of that thread, outermost ones, in order
};

// BadArgument: there is no such whole step, a gap of the recording is in it, an op runs over its border, it runs no
// ops, or forward and backward passes are run by different threads.
Result<StepRange> step_range(const trace::TakeIndex& index, const trace::Steps& steps, std::size_t which);

// SiteKey of an op, from its uses.
std::uint64_t key_of(const trace::TakeIndex& index, OpId op);

}  // namespace ullage::plan
