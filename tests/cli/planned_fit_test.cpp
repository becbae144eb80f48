// SPDX-License-Identifier: Apache-2.0
// `ullage plan`, `ullage predict` and a run that plans for itself must give the same plan for the same take and
// memory. Each is called where it asks for its plan (a run does so in runtime/plan/planning.cpp, between recording and
// program).
#include "small_training.h"
#include "ullage/cli/plan_maker.h"
#include "ullage/cli/planned_fit.h"
#include "ullage/plan/fit.h"
#include "ullage/store/budget.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>

namespace ullage::cli {
namespace {

using Outcome = plan::Plan::Outcome;

const std::string kName = "the steps observed";

PlanQuestion question() {
  PlanQuestion asked;
  asked.rates = {.write = 1e9, .read = 1e9};
  asked.effort = 1'000'000;
  return asked;
}

plan::Fit fit_of(const Result<report::PlanReport>& report) {
  return {report->planned->plan, report->beside, report->planned_levels};
}

plan::Fit of_plan(trace::TraceFile file, Bytes memory) {
  PlanQuestion asked = question();
  asked.memory = memory;
  std::ostringstream err;
  Progress progress(err, false);
  return fit_of(make_plan_report(std::move(file), asked, "run.ullage", progress));
}

plan::Fit of_prediction(const trace::TraceFile& file, Bytes memory, Bytes outside) {
  predict::Prediction prediction;
  prediction.take = file.takes.back();
  prediction.memory = memory;
  prediction.pool_resident_peak = 500_MiB;
  prediction.process_peak = prediction.pool_resident_peak + outside;
  std::ostringstream err;
  Progress progress(err, false);
  return fit_of(plan_prediction(prediction, question(), progress));
}

// A run plans for its pool's limit, not for stated memory, so `memory` is reduced by `outside` and the margin.
plan::Fit of_run(const std::string& recording, Bytes memory, Bytes outside, Bytes wasted) {
  Result<trace::TraceFile> file = trace::read_trace_file(std::as_bytes(std::span(recording)), kName);
  const Result<plan::Step> step = plan::planned_step(*file, plan::StandsOn{}, {}, kName);
  const PlanQuestion asked = question();
  plan::FitQuestion run{.memory = saturating_sub(memory, outside + store::Budget::kMargin),
                        .beside = {.rounding = wasted},
                        .name = kName};
  run.ask.rates = asked.rates, run.ask.levers = asked.levers, run.ask.effort = asked.effort;
  return *plan::fit(*step, run);
}

void expect_same(const plan::Fit& one, const plan::Fit& other) {
  EXPECT_EQ(one.plan.outcome, other.plan.outcome);
  EXPECT_EQ(one.plan.budget, other.plan.budget);
  EXPECT_EQ(one.plan.peak, other.plan.peak);
  EXPECT_EQ(one.plan.plain_peak, other.plan.plain_peak);
  EXPECT_EQ(one.plan.least, other.plan.least);
  EXPECT_EQ(one.plan.least_set_by, other.plan.least_set_by);
  EXPECT_EQ(one.plan.overhead, other.plan.overhead);
  EXPECT_EQ(one.plan.schedule, other.plan.schedule);
  EXPECT_EQ(one.beside.rounding, other.beside.rounding);
  EXPECT_EQ(one.levels, other.levels);
}

TEST(PlannedFit, IsOneForPlanPredictAndRun) {
  const trace::TraceFile file = small_file();
  const Bytes outside = file.takes.back().process.outside_peak;
  const std::string recording = bytes_of(file);
  std::set<Outcome> seen;
  for (const Bytes memory : {10_MiB, 170_MiB, 230_MiB, 260_MiB, 280_MiB, 300_MiB, 310_MiB, 320_MiB, 1_GiB}) {
    SCOPED_TRACE(memory.count);
    const plan::Fit planned = of_plan(file, memory);
    seen.insert(planned.plan.outcome);
    {
      SCOPED_TRACE("predicted");
      expect_same(planned, of_prediction(file, memory, outside));
    }
    SCOPED_TRACE("in a run");
    expect_same(planned, of_run(recording, memory, outside, {}));
  }
  EXPECT_EQ(seen.size(), 3u) << "of each outcome one";
}

}  // namespace
}  // namespace ullage::cli
