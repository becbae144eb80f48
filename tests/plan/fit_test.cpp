// SPDX-License-Identifier: Apache-2.0
// A plan is accepted only if its pages fit into the memory, not only its bytes.
#include "ullage/plan/fit.h"

#include "small_training.h"
#include "ullage/base/sizes.h"
#include "ullage/plan/model/room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ullage::plan {
namespace {

// A planner whose plans fill their budget, and a verifier that adds `pages(try)` to each plan's bytes.
struct Fake {
  std::function<Bytes(int)> pages;
  Bytes floor{};  // no plan is for less
  BesideTensors beside{140_MiB, 8_MiB, 1_MiB};
  int tries = 0;

  Result<Fit> ask(Bytes memory) {
    const auto make = [&](Bytes budget) {
      ++tries;
      Plan plan;
      plan.outcome = budget < floor ? Plan::Outcome::Infeasible : Plan::Outcome::Planned;
      plan.budget = plan.peak = budget, plan.plain_peak = 900_MiB, plan.least = 10_MiB, plan.least_set_by = "op";
      plan.schedule.actions.emplace_back();
      return plan;
    };
    const auto verify = [&](const Schedule&, Bytes budget) -> Result<Verified> {
      Verified verified;
      verified.peak = budget, verified.resident = budget + pages(tries), verified.levels = {budget};
      return verified;
    };
    return fit_pages(memory, beside, make, verify);
  }
};

TEST(HoldInPlace, TakesUnusedStoragesOfThatSize) {
  Step step;
  step.ops.resize(1);
  for (const Bytes size : {8_MiB, 8_MiB, 8_MiB, 4_MiB}) {
    StepStorage one;
    one.bytes = size;
    one.from_before = one.movable = true;
    step.values.push_back({step.storages.push_back(one)});
  }
  step.ops[OpIndex{0}].reads = {ValueIndex{0}};
  const std::vector<Bytes> sizes{8_MiB, 2_MiB};
  hold_in_place(step, sizes);
  std::vector<bool> movable;
  for (const StepStorage& one : step.storages) movable.push_back(one.movable);
  EXPECT_EQ(movable, (std::vector<bool>{true, false, true, true}));
}

TEST(PlanPages, SetsAsideWhatAPlanNeedsOnTop) {
  Fake fake{[](int) { return 3_MiB; }};
  const Result<Fit> paged = fake.ask(400_MiB);
  ASSERT_TRUE(paged);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Planned);
  EXPECT_EQ(fake.tries, 2);
  EXPECT_EQ(paged->beside.rounding, 3_MiB);
  EXPECT_EQ(paged->plan.budget, paged->beside.budget_of(400_MiB));
  EXPECT_EQ(paged->levels, (Table<OpIndex, Bytes>{paged->plan.budget}));
}

// Each time more than is left free for pages after the try before.
Bytes ever_more(int tries) { return 2_MiB * (1ULL << (tries * (tries + 3) / 2)); }

TEST(PlanPages, OfNoPlanThatFitsSaysSoAndWhatTheLastOneNeeds) {
  Fake fake{ever_more};
  const Bytes memory = ever_more(7);
  const Result<Fit> paged = fake.ask(memory);
  ASSERT_TRUE(paged);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Infeasible);
  EXPECT_EQ(paged->plan.schedule, Schedule{});
  EXPECT_TRUE(paged->levels.empty());
  EXPECT_EQ(paged->plan.least_set_by, "op");
  EXPECT_EQ(paged->beside.rounding, ever_more(fake.tries));
  EXPECT_GT(paged->beside.memory_for(paged->plan.least), memory) << "what is named is more than what was asked for";
}

TEST(PlanPages, ThatAreJustWhatThereIsFit) {
  Fake fake{[](int) { return 1_MiB; }};
  EXPECT_EQ(fake.ask(400_MiB)->plan.outcome, Plan::Outcome::Planned);
  EXPECT_EQ(fake.tries, 1);
}

// The plan of the last try is verified, too: it may be the one that fits.
TEST(PlanPages, ThatFitAtTheLastTryFit) {
  Fake fake{[](int tries) { return tries < 6 ? ever_more(tries) : 1_MiB; }};
  const Result<Fit> paged = fake.ask(ever_more(7));
  ASSERT_TRUE(paged);
  EXPECT_EQ(fake.tries, 6);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Planned);
}

// Each plan peaks a little below its budget, and fills whole slabs: as many as the plan before, if the budget is hardly
// smaller.
TEST(PlanPages, ThatComeInSlabsFitAfterAFewTries) {
  int tries = 0;
  Bytes peak;
  const auto pages = [&] { return Bytes{(peak + 3_MiB + 256_KiB).count / (256_KiB).count * (256_KiB).count}; };
  const auto make = [&](Bytes budget) {
    ++tries;
    peak = Bytes{budget.count / 20'480 * 20'480};
    Plan plan;
    plan.outcome = Plan::Outcome::Planned;
    plan.budget = budget, plan.peak = peak;
    return plan;
  };
  const auto verify = [&](const Schedule&, Bytes) -> Result<Verified> {
    Verified verified;
    verified.peak = peak, verified.resident = pages();
    return verified;
  };
  for (const Bytes more : {0_KiB, 10_KiB, 60_KiB, 130_KiB, 200_KiB, 250_KiB}) {
    tries = 0;
    const Bytes memory = 400_MiB + more;
    const BesideTensors beside{.rounding = 3_MiB};
    const Result<Fit> paged = fit_pages(memory, beside, make, verify);
    ASSERT_TRUE(paged);
    EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Planned) << to_string(more);
    EXPECT_LE(tries, 5);
    EXPECT_LE(pages(), beside.budget_of(memory) + beside.rounding) << "of the plan that was taken";
    EXPECT_GE(paged->plan.budget + 2_MiB, beside.budget_of(memory)) << "not lower than needed";
  }
}

// The third try leaves 2 MiB more free than its pages need, and no plan is for so little.
TEST(PlanPages, AreLeftLessFreeIfThatIsTooMuch) {
  Fake fake{[](int tries) { return tries == 1 ? 2_MiB : 3_MiB; }};
  fake.floor = fake.beside.budget_of(400_MiB) - 3_MiB;
  const Result<Fit> paged = fake.ask(400_MiB);
  ASSERT_TRUE(paged);
  EXPECT_EQ(fake.tries, 4);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Planned);
  EXPECT_EQ(paged->beside.rounding, 3_MiB) << "what its pages take and no more";
}

TEST(PlanPages, WhatTheVerifierRefusesIsAnError) {
  BesideTensors beside;
  const auto make = [](Bytes) {
    Plan plan;
    plan.outcome = Plan::Outcome::Planned;
    return plan;
  };
  const auto verify = [](const Schedule&, Bytes) -> Result<Verified> {
    return Error{Error::Kind::BadArgument, "no", "op 3"};
  };
  EXPECT_FALSE(fit_pages(400_MiB, beside, make, verify));
}

Step step_of_batch(std::uint64_t batch) {
  SmallTraining program(batch);
  program.steps(3);
  trace::TraceFile file = file_of({program.take()});
  return planned_step(file, {}, {}, "run").value();
}

FitQuestion question_of(Bytes memory, const BesideTensors& beside) {
  FitQuestion question{.memory = memory, .beside = beside, .name = "run"};
  question.ask.effort = 100'000;
  return question;
}

// Returns the memory in which a plan may use `percent` of the plain peak.
Bytes memory_of(const Step& step, const BesideTensors& beside, std::uint64_t percent) {
  return beside.memory_for(step.peak * percent / 100);
}

TEST(Fit, StaysWithinTheMemoryWithItsPages) {
  int planned = 0;
  for (const std::uint64_t batch : {2, 4, 8}) {
    const Step step = step_of_batch(batch);
    const BesideTensors beside = beside_recorded(step, Kernels::Processor);
    for (const std::uint64_t percent : {50, 65, 80, 95}) {
      SCOPED_TRACE(std::to_string(batch) + ", " + std::to_string(percent) + " %");
      const Bytes memory = memory_of(step, beside, percent);
      const Result<Fit> found = fit(step, question_of(memory, beside));
      ASSERT_TRUE(found) << found.error().text();
      EXPECT_GE(found->beside.rounding, step.overhead);
      if (found->plan.outcome != Plan::Outcome::Planned) continue;
      ++planned;
      const Result<Verified> verified = verify(step, found->plan.schedule, found->plan.budget);
      ASSERT_TRUE(verified) << verified.error().text();
      EXPECT_LE(verified->resident + kOutsideAllowance + beside.outside + beside.margin, memory);
      EXPECT_LE(found->beside.memory_for(found->plan.budget), memory);
      EXPECT_EQ(found->levels, verified->levels);
    }
  }
  EXPECT_GE(planned, 6);
}

TEST(Fit, NamesALeastThatCanBeHad) {
  for (const std::uint64_t batch : {2, 4, 8}) {
    const Step step = step_of_batch(batch);
    const BesideTensors beside = beside_recorded(step, Kernels::Processor);
    const Result<Fit> none = fit(step, question_of(10_MiB, beside));
    ASSERT_TRUE(none) << none.error().text();
    ASSERT_EQ(none->plan.outcome, Plan::Outcome::Infeasible);
    EXPECT_EQ(none->plan.schedule, Schedule{});
    const Result<Fit> least = fit(step, question_of(none->beside.memory_for(none->plan.least), beside));
    ASSERT_TRUE(least) << least.error().text();
    EXPECT_NE(least->plan.outcome, Plan::Outcome::Infeasible) << batch;
  }
}

TEST(Fit, OfAPoolIsThatOfItsProcess) {
  const Step step = step_of_batch(4);
  const BesideTensors beside = beside_recorded(step, Kernels::Processor);
  for (const std::uint64_t percent : {10, 80, 110}) {
    const Bytes memory = memory_of(step, beside, percent);
    const Result<Fit> process = fit(step, question_of(memory, beside));
    const Result<Fit> pool = fit(step, question_of(memory - beside.outside - beside.margin, {}));
    ASSERT_TRUE(process && pool);
    EXPECT_EQ(process->plan.outcome, pool->plan.outcome);
    EXPECT_EQ(process->plan.budget, pool->plan.budget);
    EXPECT_EQ(process->plan.least, pool->plan.least);
    EXPECT_EQ(process->plan.schedule, pool->plan.schedule);
    EXPECT_EQ(process->beside.rounding, pool->beside.rounding);
  }
}

// The rounding that a running pool measured may be more than the model of the step computes.
TEST(Fit, SetsAsideWhatAPoolWastes) {
  const Step step = step_of_batch(4);
  const BesideTensors wasting{.rounding = step.overhead + 100_KiB};
  const Bytes memory = wasting.memory_for(step.peak);
  EXPECT_EQ(fit(step, question_of(memory, wasting))->plan.outcome, Plan::Outcome::Fits);
  const Result<Fit> less = fit(step, question_of(memory - 1_B, wasting));
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_EQ(less->plan.outcome, Plan::Outcome::Planned);
  EXPECT_LT(less->plan.budget, step.peak);
  EXPECT_GE(less->beside.rounding, wasting.rounding);
  EXPECT_EQ(fit(step, question_of(memory - 1_B, {}))->plan.outcome, Plan::Outcome::Fits);
}

TEST(Fit, TakesACheaperPlanOffTheCurveWhereItsPagesFit) {
  const Step step = step_of_batch(4);
  const BesideTensors beside = beside_recorded(step, Kernels::Processor);
  const Result<Fit> found = fit(step, question_of(memory_of(step, beside, 80), beside));
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->plan.outcome, Plan::Outcome::Planned);
  Fit dear = *found;
  dear.plan.overhead.count += 1;
  dear.plan.bound = Seconds{0.5};
  std::vector<Plan> curve = {found->plan};
  ASSERT_TRUE(join_curve(step, "run", curve, dear));
  EXPECT_EQ(dear.plan.overhead, found->plan.overhead);
  EXPECT_EQ(dear.plan.bound, Seconds{0.5});
  ASSERT_EQ(curve.size(), 1u);
  // A budget that holds just the plan's bytes: its pages do not fit.
  Fit tight = dear;
  tight.plan.overhead.count += 1;
  tight.beside.rounding = {};
  tight.plan.budget = curve[0].budget = found->plan.peak;
  ASSERT_GT(verify(step, found->plan.schedule, found->plan.peak)->resident, found->plan.peak);
  const Seconds before = tight.plan.overhead;
  curve[0].overhead = found->plan.overhead;
  ASSERT_TRUE(join_curve(step, "run", curve, tight));
  EXPECT_EQ(tight.plan.overhead, before);
}

TEST(Fit, PutsThePlanIntoTheCurve) {
  const auto point = [](std::uint64_t budget, Plan::Outcome outcome, double seconds) {
    Plan plan;
    plan.budget = 1_MiB * budget, plan.outcome = outcome, plan.overhead = Seconds{seconds};
    return plan;
  };
  using Outcome = Plan::Outcome;
  const std::vector<Plan> before = {point(1, Outcome::Infeasible, 0), point(3, Outcome::Planned, 5),
                                    point(5, Outcome::Planned, 4), point(7, Outcome::Planned, 1),
                                    point(9, Outcome::Fits, 0)};
  std::vector<Plan> curve = before;
  put_into_curve(point(4, Outcome::Planned, 2), curve);
  ASSERT_EQ(curve.size(), 6u);
  const std::vector<double> seconds = {0, 5, 2, 2, 1, 0};
  for (std::size_t i = 0; i < curve.size(); ++i) EXPECT_EQ(curve[i].overhead.count, seconds[i]) << i;
  EXPECT_EQ(curve[3].budget, 5_MiB);
  curve = before;
  put_into_curve(point(1, Outcome::Planned, 4.5), curve);
  ASSERT_EQ(curve.size(), 5u);
  EXPECT_EQ(curve[0].outcome, Outcome::Planned);
  EXPECT_EQ(curve[1].overhead, Seconds{4.5});
  EXPECT_EQ(curve[2].overhead, Seconds{4});
}

// A run gives its pool what remains beside `outside`, margin and allowance, and keeps back a part of the pool. The
// budget that is planned for must be exactly what is left then.
TEST(Fit, LeavesRoomForARunThatFollowsThePlan) {
  const BesideTensors beside{140_MiB, 8_MiB, 3_MiB};
  for (const Bytes memory : {160_MiB, 160_MiB + 1_B, 200_MiB - 1_B, 1_GiB, 64_GiB + 199_B, 64_GiB + 200_B}) {
    const Bytes limit = memory - beside.outside - beside.margin - kOutsideAllowance;
    const Bytes budget = beside.budget_of(memory);
    EXPECT_EQ(budget + beside.rounding, limit - kept_back(limit)) << memory.count;
    // The inverse gives the same memory, or one byte less.
    EXPECT_LE(beside.memory_for(budget), memory);
    EXPECT_GE(beside.memory_for(budget) + 1_B, memory);
    EXPECT_EQ(beside.budget_of(beside.memory_for(budget)), budget);
    EXPECT_LT(beside.budget_of(beside.memory_for(budget) - 1_B), budget);
  }
  EXPECT_EQ(beside.budget_of(100_MiB), Bytes{});
}

}  // namespace
}  // namespace ullage::plan
