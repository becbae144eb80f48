// SPDX-License-Identifier: Apache-2.0
#pragma once

// A lower bound on what any plan costs, by a linear program. bound_program.h describes that program.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Returns a lower bound on the seconds that any schedule with `ask.levers` adds to the step within `ask.budget`. It
// counts recomputes, and copies at their rates as if the program waited for each; overlapped copies may cost less.
// Zero if Clp, the solver, is not installed on this machine. BadArgument: no schedule fits, not even one with fractions
// of actions. NotFound: Ullage was built without the code that uses Clp (ULLAGE_BOUND=OFF). More `time_points` mostly
// give a tighter bound and take longer. For a step of very many values the search ends early, with a lower bound.
//
// Why no schedule is cheaper: every schedule that fits is a solution of the linear program with columns of 0 and 1
// (bound_program.h). Its cost is at least that of these columns. The solution of the linear program may use fractions,
// which can only be cheaper. The program leaves out memory between the points, memory of recomputes, the fixed cost of
// an action, and values of almost no bytes. Each omission can only lower the bound. The bound is computed from the
// prices of the rows alone (linear_program.h), so no tolerance of the solver makes it too high.
Result<Seconds> lower_bound(const Step& step, const Ask& ask, std::size_t time_points = 16);

}  // namespace ullage::plan
