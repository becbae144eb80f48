// SPDX-License-Identifier: Apache-2.0
#pragma once

// What others do, as choices of a problem: to start a search from, and to compare with (bench/baselines.h).

#include "ullage/plan/search/search.h"

#include <array>
#include <atomic>
#include <functional>

namespace ullage::plan {

inline constexpr std::array kPolicies = {"segments", "recompute all", "drop cheap ops", "dtr", "knapsack"};

// Tells every setting of every policy: its index into kPolicies, and what it comes to. Each policy gives up more and
// more; dtr and knapsack end with the first setting within `least`. `stop` as Ask::stop.
using PolicyTold = std::function<void(std::size_t policy, const Choice&, const Outcome&)>;
void try_policies(const Problem& problem, Timeline& timeline, std::int64_t least, const std::atomic<bool>* stop,
                  const PolicyTold& tell);

}  // namespace ullage::plan
