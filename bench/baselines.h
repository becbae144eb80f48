// SPDX-License-Identifier: Apache-2.0
#pragma once

// Known policies, applied to the same step and judged by the same verifier, to compare the planner with. The planner
// starts from the same choices (policies.h), so none of them is cheaper than its plan.

#include "ullage/plan/model/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

struct Baseline {
  std::string name;                  // "segments", "recompute all", "drop cheap ops", "dtr", "knapsack"
  std::optional<Schedule> schedule;  // nothing if no setting fits in the budget
  Bytes peak;
  Seconds overhead;
};

// Returns, for each policy, the cheapest of its settings that stays within ask.budget. As in the published policies,
// only saved tensors of forward passes are considered. Of these, only tensors that can be absent while plain execution
// is over the budget count:
//   segments        checkpoints every k blocks of about equal saved bytes, cut where few bytes cross; k up to 40
//   recompute all   keeps nothing that can be recomputed
//   drop cheap ops  recomputes all but convolutions, matrix products and attention
//   dtr             if there is no room, evicts the least cost / (bytes x staleness); the cost includes the chain
//                   (Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021)
//   knapsack        frees enough saved bytes in the least seconds, ignoring the peak (torch.compile's memory budget)
std::vector<Baseline> baselines(const Step& step, const Ask& ask);

}  // namespace ullage::plan
