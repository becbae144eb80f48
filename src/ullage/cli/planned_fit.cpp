// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/planned_fit.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using What = plan::Action::What;

std::uint64_t count(const plan::Schedule& schedule, std::initializer_list<What> which) {
  return static_cast<std::uint64_t>(std::ranges::count_if(schedule.actions, [&](const plan::Action& action) {
    return std::ranges::find(which, action.what) != which.end();
  }));
}

predict::PlannedFit fit_of(const report::PlanReport& report) {
  const plan::Plan& plan = report.planned->plan;
  predict::PlannedFit fit;
  fit.fits = plan.outcome != plan::Plan::Outcome::Infeasible;
  fit.least = report.beside.memory_for(plan.least);
  if (fit.fits) {
    fit.more_time = plan.step > Seconds{} ? plan.overhead.count / plan.step.count : 0;
    fit.recomputed = count(plan.schedule, {What::Recompute, What::BatchNorm});
    fit.spilled = count(plan.schedule, {What::Spill});
  }
  return fit;
}

}  // namespace

Result<report::PlanReport> plan_prediction(const predict::Prediction& prediction, PlanQuestion question,
                                           Progress& progress) {
  trace::TraceFile file;
  file.takes = {prediction.take};
  // The planner takes the bytes outside the pool from the take; these are the predicted ones.
  file.takes[0].process.outside_peak = saturating_sub(prediction.process_peak, prediction.pool_resident_peak);
  question.memory = prediction.room();
  return make_plan_report(std::move(file), question, "what was predicted", progress);
}

std::optional<report::PlanReport> add_planned_fit(predict::Prediction& prediction, Progress& progress,
                                                  std::ostream& err, const std::atomic<bool>* stop) {
  if (!prediction.memory || prediction.fits()) return std::nullopt;
  progress.pause();
  PlanQuestion question;
  question.bound = false, question.stop = stop;
  add_rates(question, "cpu", err);
  Result<report::PlanReport> made = plan_prediction(prediction, question, progress);
  progress.pause();
  if (!made) {
    err << "ullage: no plan was made: " << made.error().text() << '\n';
    return std::nullopt;
  }
  prediction.planned = fit_of(*made);
  return std::move(made).value();
}

std::optional<predict::PlannedFit> planned_fit_with(const plan::Levers& levers, const predict::Prediction& prediction,
                                                    Progress& progress, std::ostream& err,
                                                    const std::atomic<bool>* stop) {
  PlanQuestion question;
  question.levers = levers, question.bound = false, question.stop = stop;
  add_rates(question, "cpu", err);
  const Result<report::PlanReport> made = plan_prediction(prediction, question, progress);
  progress.pause();
  return made ? std::optional(fit_of(*made)) : std::nullopt;
}

}  // namespace ullage::cli
