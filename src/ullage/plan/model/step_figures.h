// SPDX-License-Identifier: Apache-2.0
#pragma once

// The figures of a whole step: its peak, what the pool takes beyond the bytes asked for, what autograd keeps, times.

#include "ullage/plan/model/stands_on.h"
#include "ullage/plan/model/step.h"
#include "ullage/plan/model/step_range.h"

namespace ullage::plan {

// The most bytes that are present at once if the step runs without a plan.
Bytes plain_peak(const Step& step);

// The time from the step's first event to the first one after it, or to the last event if the recording ends with the
// step. Zero if the recording has no times.
Seconds length_of(const trace::TakeIndex& index, const StepRange& range);

// Fills in Step::peak and all members that are declared after it. The ops and values of `step` must be there already.
void add_figures(const trace::TakeIndex& index, const StepRange& range, const StandsOn& on, Step& step);

}  // namespace ullage::plan
