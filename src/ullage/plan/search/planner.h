// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the cheapest exact way for a step to stay within a budget. A choice is judged by the whole timeline it makes:
// chains of recomputes, what they need at once, copies.

#include "ullage/plan/model/plan.h"

#include <functional>
#include <vector>

namespace ullage::plan {

// Deterministic for a seed. Every plan that is returned has passed the verifier. `better`: called with each better plan
// while the search goes on; false ends the search. May be empty.
Plan make_plan(const Step& step, const Ask& ask, const std::function<bool(const Plan&)>& better = {});

// Plans for a fixed grid of budgets between the least and the plain peak, ascending; each is the cheapest of all found
// for budgets up to its own, so that more bytes never cost more. `ask.budget` is added to the grid unless it is zero.
std::vector<Plan> plan_curve(const Step& step, const Ask& ask, std::size_t points = 16);

}  // namespace ullage::plan
