// SPDX-License-Identifier: Apache-2.0
#pragma once

// Policies known from other work, as choices of a problem. bench/baselines.h describes each. The search takes their
// results as candidates for the plan and as starting points; the benchmark compares plans with them.

#include "ullage/plan/search/search.h"

#include <array>
#include <functional>

namespace ullage::plan {

inline constexpr std::array kPolicies = {"segments", "recompute all", "drop cheap ops", "dtr", "knapsack"};

// Simulates all settings of all policies and calls `tell` for each that is possible. `policy` is an index into
// kPolicies. dtr and knapsack evict one tensor after the other, up to the first setting within `least`. If there are
// too many tensors for `end`, they evict several between two settings. `end` ends each policy.
using PolicyFound = std::function<void(std::size_t policy, const Choice&, const Outcome&)>;
void try_policies(const Problem& problem, Timeline& timeline, std::int64_t least, SearchEnd end,
                  const PolicyFound& tell);

}  // namespace ullage::plan
