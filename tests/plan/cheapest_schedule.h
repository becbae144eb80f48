// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the cheapest of all schedules of a small step by exhaustive search. A lower bound must never exceed its cost,
// and no plan may cost less.

#include "ullage/plan/model/plan.h"

#include <cstddef>
#include <optional>
#include <variant>

namespace ullage::plan::test {

struct Cheapest {
  Seconds seconds;  // of recomputes and of copies; the program waits for every copy
  Schedule schedule;
};
struct NoSchedule {};     // none fits into the budget
struct TooManyStates {};  // the search gave up after `most_states`
using CheapestOutcome = std::variant<Cheapest, NoSchedule, TooManyStates>;

// The step may have up to 16 values, and at most three storages that live on from the step before.
CheapestOutcome cheapest_schedule(const Step& step, const Ask& ask, std::size_t most_states);

}  // namespace ullage::plan::test
