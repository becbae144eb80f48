// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan whose pages, and not only whose bytes, stay within a memory.

#include "ullage/base/result.h"
#include "ullage/plan/verifier.h"
#include "ullage/report/plan_beside.h"

#include <functional>
#include <vector>

namespace ullage::cli {

struct PagedPlan {
  plan::Plan plan;
  std::vector<Bytes> levels;  // Verified's; empty without a schedule
};

using MakePlan = std::function<plan::Plan(Bytes budget)>;
using VerifyPlan = std::function<Result<plan::Verified>(const plan::Schedule&, Bytes budget)>;

// How many bytes pages and slabs take on top is known of the plain step: `beside` has it. Where a plan needs more, that
// is set aside there and planned again. Where this leads nowhere the plan is Infeasible, and its least is the budget of
// the last one: with the pages that one needs, `beside` has them too, it fits. An error is the verifier's.
Result<PagedPlan> plan_for_pages(Bytes memory, report::BesideTensors& beside, const MakePlan& make,
                                 const VerifyPlan& verify);

}  // namespace ullage::cli
