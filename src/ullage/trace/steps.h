// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where one step of the program ends and the next begins, which phase each event belongs to, and what grows from step
// to step. From annotations where the file has them (Optimizer.step), else from stacks, else from the period of the
// sequence of allocations.

#include "ullage/trace/levels.h"
#include "ullage/trace/owners.h"
#include "ullage/trace/trace.h"

#include <string>
#include <vector>

namespace ullage::trace {

// Index: EventId.
std::vector<Phase> phases(const Trace& trace, const std::vector<StackMeaning>& meanings);

struct Steps {
  enum class From { Nothing, Annotations, Stacks, Period };
  From from = From::Nothing;
  std::vector<EventId> begins;  // step i is [begins[i], begins[i + 1]); the last one may be cut off by the end
};
Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings);

// Bytes that one stack leaves behind in every step. At least three whole steps are needed to call it growth.
struct Growth {
  StackId stack;
  std::string name;
  Bytes per_step;              // median over the steps
  std::uint64_t steps = 0;     // in which it grew
  std::uint64_t of_steps = 0;  // that were looked at
  Bytes total;                 // live at the end of what was left behind
};
// Largest first.
std::vector<Growth> growth(const Trace& trace, const Steps& steps, const std::vector<StackMeaning>& meanings);

}  // namespace ullage::trace
