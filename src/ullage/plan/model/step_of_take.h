// SPDX-License-Identifier: Apache-2.0
#pragma once

// The step that is planned, out of a recording.

#include "ullage/base/result.h"
#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstddef>
#include <vector>

namespace ullage::plan {

// Step `which` of the take, counted from zero; for a plan the second whole one or a later one: the first holds the
// loading, and the making of optimizer state. BadArgument: there is no such whole step, a gap of the recording is in
// it, or the ops of several threads use the same storages.
Result<Step> step_of(const trace::Take& take, const trace::TakeMeaning& meaning, std::size_t which,
                     const StandsOn& on = {});

// The step to plan: the last whole one of those alike (same keys in the same order) that come most often. The times of
// an op are the least of all steps alike.
Result<Step> typical_step(const trace::Take& take, const trace::TakeMeaning& meaning, const StandsOn& on = {});

}  // namespace ullage::plan
