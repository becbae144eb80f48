// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the cheapest plan by which a step stays within a budget with the same bits. Every choice is judged by a
// simulation of the whole step: chains of recomputes, what they need at once, copies.

#include "ullage/plan/model/plan.h"

#include <functional>
#include <vector>

namespace ullage::plan {

// Deterministic for a seed, unless Ask::stop or `better` ends the search. A returned schedule has passed the verifier.
// `better` may be empty. Else it is called with each better plan during the search; if it returns false, the search
// ends.
Plan make_plan(const Step& step, const Ask& ask, const std::function<bool(const Plan&)>& better = {});

// Returns plans for `points` budgets, ascending, evenly spaced: the first is the floor (floor.h), the last is one space
// below the plain peak. Each is the cheapest plan found for any budget up to its own, so that more bytes never cost
// more. One more plan, the last, is for the plain peak: there the step fits. A plan for ask.budget is added if that is
// above zero and below the plain peak. If no plan was found for a budget, the outcome is Infeasible, and Plan::least is
// the floor. Below the floor no plan exists; whether one exists at it is not known.
std::vector<Plan> plan_curve(const Step& step, const Ask& ask, std::size_t points = 16);

}  // namespace ullage::plan
