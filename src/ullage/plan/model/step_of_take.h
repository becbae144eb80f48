// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds the step to plan from a take, the record of one run: a step with a given number, or the most frequent one.

#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstddef>
#include <vector>

namespace ullage::plan {

// Returns step `which` of the take, counted from zero. To make a plan, choose the second whole step or a later one: the
// first contains the loading and creates optimizer state. BadArgument: as for step_range(). BadFile: as for
// build_step().
Result<Step> step_of(const trace::Take& take, const trace::TakeMeaning& meaning, std::size_t which,
                     const StandsOn& on = {});

// Returns the most frequent step. Leaves out the first step and groups the other whole steps: steps with equal keys in
// equal order form a group. Returns the last step of the largest group. If several groups are the largest, that is the
// group whose last step is the latest. The step's length and the time of each op are the least in the group.
// BadArgument: no step qualifies. BadFile: as for build_step().
Result<Step> typical_step(const trace::Take& take, const trace::TakeMeaning& meaning, const StandsOn& on = {});

}  // namespace ullage::plan
