// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/fit.h"

#include "ullage/plan/model/room.h"
#include "ullage/plan/model/step_of_take.h"
#include "ullage/plan/search/planner.h"
#include "ullage/store/budget.h"
#include "ullage/trace/take/take_meaning.h"

#include <algorithm>
#include <utility>

namespace ullage::plan {
namespace {

// Each try plans and verifies.
constexpr int kPageTries = 6;
constexpr int kLeastTries = 6;

// The part of a pool's limit that a plan may fill with pages. It leaves the rest free (room.h says why).
Bytes filled(Bytes limit) { return saturating_sub(limit, kept_back(limit)); }

// The least limit that leaves a plan `pages` bytes to fill. If the limit grows by a byte, filled() grows by at most
// one. So the loop does not overshoot.
Bytes limit_for(Bytes pages) {
  Bytes limit = pages;
  while (filled(limit) < pages) limit += pages - filled(limit);
  return limit;
}

Plan without_plan(const Plan& tried) {
  Plan plan;
  plan.outcome = Plan::Outcome::Infeasible;
  plan.budget = plan.least = tried.budget;
  plan.peak = plan.plain_peak = tried.plain_peak;
  plan.step = tried.step;
  plan.least_set_by = tried.least_set_by;
  return plan;
}

Error not_held(const Error& error, const std::string& name) {
  return {Error::Kind::BadFile, "the plan does not hold: " + error.text(), name};
}

// Finds the least budget to name if there is no plan, by making plans. The first is for the planner's own `least`. If
// none is found for that, this bisects between it and the peak of the step without a plan. If the pages of a plan take
// more bytes than its tensors, `rounding` is raised to the difference. If it is stopped, it returns the least so far.
Status look_for_least(const Step& step, const FitQuestion& question, Fit& found) {
  Ask ask = question.ask;
  Bytes below = found.plan.least, least = std::max(found.plan.plain_peak, found.plan.least);
  ask.budget = below;
  for (int i = 0; i < kLeastTries && below < least; ++i) {
    if (ask.stop != nullptr && ask.stop->load()) break;
    const Plan tried = make_plan(step, ask);
    if (tried.outcome == Plan::Outcome::Planned) {
      const Result<Verified> verified = verify(step, tried.schedule, ask.budget);
      if (!verified) return not_held(verified.error(), question.name);
      least = verified->peak;
      found.beside.rounding = std::max(found.beside.rounding, saturating_sub(verified->resident, least));
      if (i == 0) break;  // a plan for the planner's least exists: nothing below it is worth a try
    } else {
      below = ask.budget;
    }
    ask.budget = below + (std::max(least, below) - below) / 2;
  }
  found.plan.least = least;
  return success();
}

}  // namespace

Bytes BesideTensors::kept_free(Bytes budget) const {
  const Bytes pages = budget + rounding;
  return limit_for(pages) - pages + kOutsideAllowance;
}

Bytes BesideTensors::memory_for(Bytes budget) const { return budget + rounding + kept_free(budget) + outside + margin; }

Bytes BesideTensors::budget_of(Bytes memory) const {
  const Bytes limit = saturating_sub(memory, outside + margin + kOutsideAllowance);
  return saturating_sub(filled(limit), rounding);
}

BesideTensors beside_recorded(const Step& step, Kernels kernels) {
  const Bytes least = kernels == Kernels::Card ? Bytes{} : store::Budget::kTorchAlone + store::Budget::kWarmUp;
  // A step's `overhead` is bytes of pages and slabs; a plan's is seconds.
  return {std::max(step.outside, least), store::Budget::kMargin, step.overhead};
}

Result<Step> planned_step(trace::TraceFile& file, const StandsOn& on, std::optional<std::size_t> which,
                          const std::string& name) {
  if (file.takes.empty()) return Error{Error::Kind::BadFile, "holds no take; record the program again", name};
  trace::Take& take = file.takes.back();
  const trace::TakeMeaning meaning = trace::understand(take);
  if (which) return step_of(take, meaning, *which, on);
  Result<Step> step = typical_step(take, meaning, on);
  if (!step) return Error{Error::Kind::BadFile, step.error().message, name};
  return step;
}

void hold_in_place(Step& step, std::span<const Bytes> sizes) {
  Table<StorageIndex, bool> used(step.storages.size());
  const auto use = [&](ValueIndex value) { used[step.values[value].storage] = true; };
  for (const StepOp& op : step.ops) {
    std::ranges::for_each(op.reads, use);
    std::ranges::for_each(op.makes, use);
  }
  for (const Bytes size : sizes) {
    for (const StorageIndex s : step.storages.ids()) {
      StepStorage& one = step.storages[s];
      if (!one.movable || !one.from_before || used[s] || one.bytes != size) continue;
      one.movable = false;
      break;
    }
  }
}

Result<Fit> fit_pages(Bytes memory, const BesideTensors& beside, const MakePlan& make, const VerifyPlan& verify) {
  Fit made{{}, beside, {}};
  // Small storages share slabs. So a plan of a slightly smaller budget may fill as many pages, and may be the same plan
  // if its peak is below that budget. So each try sets aside what the pages of the plan before took beyond its peak.
  // From the third try on, `more` is left free in addition.
  Bytes more{};
  for (int tries = 0; tries < kPageTries; ++tries) {
    // If nothing is left for tensors, asks for one byte: the answer then names the least budget that would do.
    const Bytes most = std::max(made.beside.budget_of(memory), Bytes{1});
    const Bytes budget = std::max(saturating_sub(most, more), Bytes{1});
    made.plan = make(budget);
    if (made.plan.outcome != Plan::Outcome::Planned) {
      if (more == Bytes{}) return made;
      more = {};  // that was too much
      continue;
    }
    ULLAGE_TRY_VALUE(Verified verified, verify(made.plan.schedule, budget));
    const Bytes pages = most + made.beside.rounding;
    if (verified.resident <= pages) {
      made.beside.rounding = std::max(made.beside.rounding, saturating_sub(verified.resident, budget));
      made.levels = std::move(verified.levels);
      return made;
    }
    made.beside.rounding = std::max(made.beside.rounding, saturating_sub(verified.resident, verified.peak));
    more = tries > 0 ? (verified.resident - pages) * (1U << tries) : Bytes{};
  }
  made.plan = without_plan(made.plan);
  return made;
}

Result<Fit> fit(const Step& step, const FitQuestion& question) {
  const auto stage = [&](const char* name) {
    if (question.stage) question.stage(name);
  };
  const auto make = [&](Bytes budget) {
    stage("planning");
    Ask ask = question.ask;
    ask.budget = budget;
    return make_plan(step, ask);
  };
  const auto check = [&](const Schedule& schedule, Bytes budget) { return verify(step, schedule, budget); };
  BesideTensors beside = question.beside;
  beside.rounding = std::max(beside.rounding, step.overhead);
  Result<Fit> found = fit_pages(question.memory, beside, make, check);
  if (!found) return not_held(found.error(), question.name);
  if (found->plan.outcome == Plan::Outcome::Infeasible) {
    stage("looking for the least memory");
    ULLAGE_TRY(look_for_least(step, question, *found));
  }
  return found;
}

Status join_curve(const Step& step, const std::string& name, std::vector<Plan>& curve, Fit& fit) {
  Plan& plan = fit.plan;
  if (plan.outcome != Plan::Outcome::Planned) return success();
  for (const Plan& one : curve) {
    const bool cheaper = one.outcome == Plan::Outcome::Planned && one.overhead < plan.overhead;
    if (one.budget != plan.budget || !cheaper) continue;
    Result<Verified> verified = verify(step, one.schedule, plan.budget);
    if (!verified) return not_held(verified.error(), name);
    if (plan.budget + fit.beside.rounding < verified->resident) continue;
    Plan taken = one;
    taken.least = plan.least, taken.least_set_by = plan.least_set_by, taken.bound = plan.bound;
    plan = std::move(taken);
    fit.levels = std::move(verified->levels);
  }
  put_into_curve(plan, curve);
  return success();
}

// The lower bound of a plan's cost holds for its own budget. Where the plan replaces that of a larger budget, the bound
// of the larger budget stays.
void put_into_curve(const Plan& plan, std::vector<Plan>& curve) {
  using enum Plan::Outcome;
  const auto less = [](const Plan& one, Bytes budget) { return one.budget < budget; };
  auto at = std::lower_bound(curve.begin(), curve.end(), plan.budget, less);
  if (at == curve.end() || at->budget != plan.budget) at = curve.insert(at, plan);
  for (; at != curve.end(); ++at) {
    if (at->outcome == Fits || (at->outcome == Planned && at->overhead <= plan.overhead)) continue;
    const Bytes budget = at->budget;
    std::optional<Seconds> bound = budget == plan.budget ? plan.bound : at->bound;
    *at = plan;
    at->budget = budget, at->bound = bound;
  }
}

}  // namespace ullage::plan
