// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_maker.h"

#include "ullage/cli/spill_rates.h"
#include "ullage/plan/bound/bound.h"
#include "ullage/plan/fit.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using Outcome = plan::Plan::Outcome;

constexpr Bytes kUnlimited{UINT64_MAX / 2};

// Bytes per second between a card and locked memory, each way: PCIe 3.0 x16, the slowest link that today's cards use.
// It is not measured, because the recorded card may not be in this machine. A run that plans for itself measures.
constexpr double kSlowLink = 12e9;

// Adds the lower bound to a plan that costs time. plan::fit() does not do this: it is linked into each program that
// runs under Ullage, and the solver must not be in there.
void add_bound(const plan::Step& step, plan::Ask ask, plan::Plan& plan) {
  if (plan.outcome != Outcome::Planned || plan.bound) return;
  ask.budget = plan.budget;
  const Result<Seconds> bound = plan::lower_bound(step, ask);
  if (bound) plan.bound = *bound;
}

void add_curve(plan::Ask ask, report::PlanReport& report, Progress& progress) {
  progress.stage("planning for sixteen budgets");
  report.curve = plan::plan_curve(report.step, ask);
  std::size_t done = 0;
  for (plan::Plan& one : report.curve) {
    progress.stage("looking for lower bounds, " + std::to_string(++done) + " of " +
                   std::to_string(report.curve.size()));
    add_bound(report.step, ask, one);
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
    err << "ullage: warning: " << rates.error().text() << "; the plan spills nothing\n";
    question.levers.spill = question.levers.state = false;
  }
}

Result<report::PlanReport> make_plan_report(trace::TraceFile file, const PlanQuestion& question,
                                            const std::string& name, Progress& progress) {
  progress.stage("reading " + name);
  const plan::StandsOn on = plan::stands_on(file.device);
  ULLAGE_TRY_VALUE(plan::Step step, plan::planned_step(file, on, question.step, name));
  report::PlanReport report;
  report.file = name;
  report.step = std::move(step);
  report.beside = plan::beside_recorded(report.step, on.kernels);
  const Result<plan::Verified> plain = plan::verify(report.step, {}, kUnlimited);
  if (!plain) return Error{Error::Kind::BadFile, "the step cannot be carried out: " + plain.error().text(), name};
  report.plain_levels = plain->levels;
  plan::Ask ask;
  ask.levers = question.levers, ask.rates = question.rates, ask.seed = question.seed;
  ask.effort = question.effort, ask.stop = question.stop;
  std::optional<plan::Fit> fit;
  if (question.memory) {
    ULLAGE_TRY_VALUE(plan::Fit found, plan::fit(report.step, {*question.memory, report.beside, ask, name,
                                                              [&](const char* what) { progress.stage(what); }}));
    fit = std::move(found);
    if (question.bound) {
      progress.stage("looking for the lower bound");
      add_bound(report.step, ask, fit->plan);
    }
  }
  if (question.curve) {
    if (fit) ask.budget = fit->plan.budget;
    add_curve(ask, report, progress);
    if (fit) {
      ULLAGE_TRY(plan::join_curve(report.step, name, report.curve, *fit));
    }
  }
  if (fit) {
    report.beside = fit->beside;
    report.planned_levels = std::move(fit->levels);
    plan::PlanFile& planned = report.planned.emplace();
    planned.plan = std::move(fit->plan), planned.sites = plan::sites_of(report.step);
    planned.memory = *question.memory, planned.seed = question.seed;
    planned.device = file.device, planned.torch = file.torch, planned.command = file.command;
  }
  return report;
}

}  // namespace ullage::cli
