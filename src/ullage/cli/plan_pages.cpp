// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_pages.h"

#include <algorithm>
#include <utility>

namespace ullage::cli {
namespace {

using Outcome = plan::Plan::Outcome;

constexpr int kTries = 5;

plan::Plan no_plan(const plan::Plan& tried) {
  plan::Plan plan;
  plan.outcome = Outcome::Infeasible;
  plan.budget = plan.least = tried.budget;
  plan.peak = plan.plain_peak = tried.plain_peak;
  plan.step = tried.step;
  plan.least_set_by = tried.least_set_by;
  return plan;
}

}  // namespace

Result<PagedPlan> plan_for_pages(Bytes memory, report::BesideTensors& beside, const MakePlan& make,
                                 const VerifyPlan& verify) {
  PagedPlan made;
  for (int tries = 0; tries < kTries; ++tries) {
    // A pool of nothing is asked for where nothing is left: the answer has the least that would do.
    const Bytes budget = std::max(beside.budget_of(memory), Bytes{1});
    made.plan = make(budget);
    if (made.plan.outcome != Outcome::Planned) return made;
    Result<plan::Verified> verified = verify(made.plan.schedule, budget);
    if (!verified) return verified.error();
    const Bytes pages = budget + beside.rounding;
    if (verified->resident <= pages) {
      made.levels = std::move(verified->levels);
      return made;
    }
    beside.rounding += verified->resident - pages;
  }
  made.plan = no_plan(made.plan);
  return made;
}

}  // namespace ullage::cli
