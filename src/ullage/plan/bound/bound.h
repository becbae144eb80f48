// SPDX-License-Identifier: Apache-2.0
#pragma once

// What no plan can beat: a linear program over several time points. Per op "run again after t", per value "present at
// t", chains down to what is present, one row of memory per time point; copies at their rates.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// A lower bound on the seconds that any schedule with `ask.levers` adds to the step within `ask.budget`: of its
// recomputes, and of the bytes it copies at their rates, as if all copies were waited for (a schedule that hides copies
// may cost less). BadArgument: no schedule fits, not even of parts. `time_points`: more are tighter and slower.
//
// Why no schedule is cheaper: bound_program.h tells what the columns stand for and what each row asks; a schedule gives
// numbers to all columns (0 or 1) with which every row holds, and costs no less than they do. The solution with parts
// can only be cheaper. What is left out makes it lower, never higher: memory between the points, that of recomputes,
// the seconds for each action beside the bytes, and values of next to no bytes. The figure is worked out from the
// prices of the rows alone (linear_program.h), so no tolerance of the solver makes it too high.
Result<Seconds> lower_bound(const Step& step, const Ask& ask, std::size_t time_points = 16);

}  // namespace ullage::plan
