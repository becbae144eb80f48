// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_maker.h"

#include "ullage/cli/plan_pages.h"
#include "ullage/cli/spill_rates.h"
#include "ullage/plan/bound.h"
#include "ullage/plan/planner.h"
#include "ullage/plan/step_of_take.h"
#include "ullage/plan/verifier.h"
#include "ullage/report/plan_words.h"
#include "ullage/store/budget.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using Outcome = plan::Plan::Outcome;

constexpr Bytes kNoLimit{UINT64_MAX / 2};

// Bytes a second between a card and locked memory, each way: PCIe 3.0 x16, the slowest that cards of today stand on.
// The card that was recorded need not be here, and a run that plans for itself measures.
constexpr double kSlowLink = 12e9;

Result<plan::Step> step_of(trace::TraceFile& file, const PlanQuestion& question, const std::string& name) {
  if (file.takes.empty()) return Error{Error::Kind::BadFile, "nothing was recorded in it", name};
  trace::Take& take = file.takes.back();  // of several, which are of small sizes, the last is the largest
  const trace::TakeMeaning meaning = trace::understand(take);
  const plan::StandsOn on = plan::stands_on(file.device);
  if (question.step) return plan::step_of(take, meaning, *question.step, on);
  Result<plan::Step> step = plan::typical_step(take, meaning, on);
  if (!step) return Error{Error::Kind::BadFile, step.error().message, name};
  return step;
}

report::BesideTensors beside(const plan::Step& step, bool on_card) {
  const Bytes least = on_card ? Bytes{} : store::Budget::kTorchAlone + store::Budget::kWarmUp;
  return {std::max(step.outside, least), store::Budget::kMargin, step.overhead};
}

Error not_held(const Error& error, const report::PlanReport& report) {
  return {Error::Kind::BadFile, "the plan does not hold: " + error.text(), report.file};
}

// What would do where there is no plan: a planner's least may be a bound that no plan reaches, so plans are made
// between it and what plain execution needs. With their pages, so that the memory that is named can be had.
Status settle_least(plan::Ask ask, report::PlanReport& report, Progress& progress) {
  progress.stage("looking for the least memory");
  plan::Plan& plan = report.planned->plan;
  constexpr int kTries = 6;
  Bytes below = plan.least, least = std::max(plan.plain_peak, plan.least);
  ask.budget = below;
  for (int i = 0; i < kTries && below < least; ++i) {
    const plan::Plan tried = plan::make_plan(report.step, ask);
    if (tried.outcome == Outcome::Planned) {
      const Result<plan::Verified> verified = plan::verify(report.step, tried.schedule, ask.budget);
      if (!verified) return not_held(verified.error(), report);
      least = verified->peak;
      report.beside.rounding = std::max(report.beside.rounding, saturating_sub(verified->resident, least));
      if (i == 0) break;  // the planner's least it is
    } else {
      below = ask.budget;
    }
    ask.budget = below + (std::max(least, below) - below) / 2;
  }
  plan.least = least;
  return success();
}

Status add_plan(const PlanQuestion& question, plan::Ask ask, report::PlanReport& report, Progress& progress) {
  plan::PlanFile& file = report.planned.emplace();
  file.memory = *question.memory, file.seed = question.seed;
  const auto make = [&](Bytes budget) {
    progress.stage("planning");
    ask.budget = budget;
    return plan::make_plan(report.step, ask);
  };
  const auto verify = [&](const plan::Schedule& schedule, Bytes budget) {
    return plan::verify(report.step, schedule, budget);
  };
  Result<PagedPlan> paged = plan_for_pages(file.memory, report.beside, make, verify);
  if (!paged) return not_held(paged.error(), report);
  file.plan = std::move(paged->plan);
  report.planned_levels = std::move(paged->levels);
  if (file.plan.outcome == Outcome::Infeasible) return settle_least(ask, report, progress);
  if (file.plan.outcome == Outcome::Planned && !file.plan.bound) {
    progress.stage("looking for the lower bound");
    const Result<Seconds> bound = plan::lower_bound(report.step, ask);
    if (bound) file.plan.bound = *bound;
  }
  return success();
}

// The curve's searches may have found a cheaper plan for the asked budget than the search for it alone: it is taken,
// where its pages fit. And the point of the plan stands in the curve.
Status join_curve(report::PlanReport& report) {
  plan::Plan& plan = report.planned->plan;
  if (plan.outcome != Outcome::Planned) return success();
  for (const plan::Plan& one : report.curve) {
    if (one.budget != plan.budget || one.outcome != Outcome::Planned || plan.overhead <= one.overhead) continue;
    Result<plan::Verified> verified = plan::verify(report.step, one.schedule, plan.budget);
    if (!verified) return not_held(verified.error(), report);
    if (plan.budget + report.beside.rounding < verified->resident) continue;
    plan::Plan taken = one;
    taken.least = plan.least, taken.least_set_by = plan.least_set_by, taken.bound = plan.bound;
    plan = std::move(taken);
    report.planned_levels = verified->levels;
  }
  report::put_into_curve(plan, report.curve);
  return success();
}

void add_curve(plan::Ask ask, report::PlanReport& report, Progress& progress) {
  ask.budget = report.planned ? report.planned->plan.budget : Bytes{};
  progress.stage("planning for sixteen budgets");
  report.curve = plan::plan_curve(report.step, ask);
  std::size_t done = 0;
  for (plan::Plan& one : report.curve) {
    progress.stage("looking for lower bounds, " + std::to_string(++done) + " of " +
                   std::to_string(report.curve.size()));
    if (one.outcome != Outcome::Planned || one.bound) continue;
    ask.budget = one.budget;
    const Result<Seconds> bound = plan::lower_bound(report.step, ask);
    if (bound) one.bound = *bound;
  }
}

}  // namespace

void add_rates(PlanQuestion& question, const std::string& device, std::ostream& err) {
  if (!question.levers.spill && !question.levers.state) return;
  if (device != "cpu") {
    question.rates.read = question.rates.write = kSlowLink;
    return;
  }
  const Result<store::SpillPlace> place = store::default_spill_place();
  const Result<plan::Rates> rates = place ? measure_rates(*place) : Result<plan::Rates>(place.error());
  if (rates) {
    question.rates = *rates;
  } else {
    err << "ullage: warning: " << rates.error().text() << "; nothing is planned to be spilled\n";
    question.levers.spill = question.levers.state = false;
  }
}

Result<report::PlanReport> make_plan_report(trace::TraceFile file, const PlanQuestion& question,
                                            const std::string& name, Progress& progress) {
  progress.stage("reading " + name);
  Result<plan::Step> step = step_of(file, question, name);
  if (!step) return step.error();
  report::PlanReport report;
  report.file = name;
  report.step = std::move(step).value();
  report.beside = beside(report.step, file.device != "cpu");
  const Result<plan::Verified> plain = plan::verify(report.step, {}, kNoLimit);
  if (!plain) return Error{Error::Kind::BadFile, "the step cannot be carried out: " + plain.error().text(), name};
  report.plain_levels = plain->levels;
  plan::Ask ask;
  ask.levers = question.levers, ask.rates = question.rates, ask.seed = question.seed;
  ask.effort = question.effort;
  if (question.memory) {
    if (const Status planned = add_plan(question, ask, report, progress); !planned) return planned.error();
    report.planned->sites = plan::sites_of(report.step);
    report.planned->device = file.device;
    report.planned->torch = file.torch, report.planned->command = file.command;
  }
  if (question.curve) {
    add_curve(ask, report, progress);
    if (report.planned) {
      if (const Status joined = join_curve(report); !joined) return joined.error();
    }
  }
  return report;
}

}  // namespace ullage::cli
