// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds one step in a take: its events, the thread that trains, and that thread's ops.

#include "ullage/base/result.h"
#include "ullage/plan/model/step.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"

#include <cstdint>
#include <vector>

namespace ullage::plan {

struct StepRange {
  EventId begin, end;        // half-open
  std::uint32_t thread = 0;  // runs most backward ops, or, if there are none, most ops
  Table<OpIndex, OpId> ops;  // the outermost ops of that thread, in order
};

// `which` counts from zero; messages count from one. BadArgument if there is no such whole step, if it has a trace::Gap
// or no ops, or if an op does not end within it. Also if its forward and backward passes run on different threads.
Result<StepRange> step_range(const trace::TakeIndex& index, const trace::Steps& steps, std::size_t which);

// The SiteKey of an op, from what the take recorded of its arguments.
std::uint64_t key_of(const trace::TakeIndex& index, OpId op);

}  // namespace ullage::plan
