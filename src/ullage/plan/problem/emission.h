// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns a simulated step into the schedule that makes a run do the same. The search simulates candidate plans (Choice)
// on a Timeline, which can record what happened; the record of the chosen one becomes the plan's actions here.

#include "ullage/plan/problem/timeline.h"

namespace ullage::plan {

// Returns the actions in their order. `record` comes from Timeline::run() of `choice`; that run must have been
// possible.
Schedule emit(const Problem& problem, const Choice& choice, const Record& record);

}  // namespace ullage::plan
