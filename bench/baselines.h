// SPDX-License-Identifier: Apache-2.0
#pragma once

// What others do, on the same step and judged by the same verifier: to compare with. The planner starts from the same
// choices too (policies.h), so none of them is cheaper than its plan.

#include "ullage/plan/model/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

struct Baseline {
  std::string name;                  // "segments", "recompute all", "drop cheap ops", "dtr", "knapsack"
  std::optional<Schedule> schedule;  // nothing: it does not fit in the budget
  Bytes peak;
  Seconds overhead;
};

// For each policy the cheapest of its settings that stays within ask.budget. Only saved tensors of forward passes are
// looked at, as these policies do, and of them those that can be away while plain execution is over the budget:
//   segments        checkpointing every k blocks of about equal saved bytes, cut where few bytes cross, k up to 40
//   recompute all   nothing that can be made again is kept
//   drop cheap ops  all but convolutions, matrix products and attention
//   dtr             evicts, when there is no room, what is least by cost / (bytes x staleness), the cost with the chain
//                   (Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021)
//   knapsack        least seconds for enough saved bytes, whatever the peak (the memory budget of torch.compile)
std::vector<Baseline> baselines(const Step& step, const Ask& ask);

}  // namespace ullage::plan
