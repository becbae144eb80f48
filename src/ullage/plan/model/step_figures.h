// SPDX-License-Identifier: Apache-2.0
#pragma once

// The figures of a whole step: its peak, what the pool takes beyond what is asked of it, what autograd keeps, its
// times.

#include "ullage/plan/model/step.h"
#include "ullage/plan/model/step_range.h"

namespace ullage::plan {

// Most bytes present at once when the step is carried out as it stands.
Bytes plain_peak(const Step& step);

// From its first event to the first one after it; zero where the recording has no times.
Seconds length_of(const trace::TakeIndex& index, const StepRange& range);

// Fills in all of them.
void add_figures(const trace::TakeIndex& index, const StepRange& range, Step& step);

}  // namespace ullage::plan
