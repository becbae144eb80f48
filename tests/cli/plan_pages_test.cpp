// SPDX-License-Identifier: Apache-2.0
// A plan is one only where its pages fit, too.
#include "ullage/cli/plan_pages.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

using plan::Plan;

// A planner whose every plan fills its budget, and a verifier that counts `pages(try)` on top of it.
struct Fake {
  std::function<Bytes(int)> pages;
  report::BesideTensors beside{140_MiB, 8_MiB, 1_MiB};
  int tries = 0;

  Result<PagedPlan> ask(Bytes memory) {
    const auto make = [&](Bytes budget) {
      ++tries;
      Plan plan;
      plan.outcome = Plan::Outcome::Planned;
      plan.budget = plan.peak = budget, plan.plain_peak = 900_MiB, plan.least = 10_MiB, plan.least_set_by = "op";
      plan.schedule.actions.emplace_back();
      return plan;
    };
    const auto verify = [&](const plan::Schedule&, Bytes budget) -> Result<plan::Verified> {
      plan::Verified verified;
      verified.resident = budget + pages(tries), verified.levels = {budget};
      return verified;
    };
    return plan_for_pages(memory, beside, make, verify);
  }
};

TEST(PlanPages, SetsAsideWhatAPlanNeedsOnTop) {
  Fake fake{[](int) { return 3_MiB; }};
  const Result<PagedPlan> paged = fake.ask(400_MiB);
  ASSERT_TRUE(paged);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Planned);
  EXPECT_EQ(fake.tries, 2);
  EXPECT_EQ(fake.beside.rounding, 3_MiB);
  EXPECT_EQ(paged->plan.budget, fake.beside.budget_of(400_MiB));
  EXPECT_EQ(paged->levels, std::vector<Bytes>{paged->plan.budget});
}

TEST(PlanPages, OfNoPlanThatFitsSaysSoAndWhatTheLastOneNeeds) {
  Fake fake{[](int tries) { return 3_MiB * static_cast<std::uint64_t>(tries); }};
  const Result<PagedPlan> paged = fake.ask(400_MiB);
  ASSERT_TRUE(paged);
  EXPECT_EQ(paged->plan.outcome, Plan::Outcome::Infeasible);
  EXPECT_EQ(paged->plan.schedule, plan::Schedule{});
  EXPECT_TRUE(paged->levels.empty());
  EXPECT_EQ(paged->plan.least_set_by, "op");
  EXPECT_EQ(fake.beside.rounding, 3_MiB * static_cast<std::uint64_t>(fake.tries));
  EXPECT_GT(fake.beside.memory_for(paged->plan.least), 400_MiB) << "what is named is more than what was asked for";
}

TEST(PlanPages, ThatAreJustWhatThereIsFit) {
  Fake fake{[](int) { return 1_MiB; }};
  EXPECT_EQ(fake.ask(400_MiB)->plan.outcome, Plan::Outcome::Planned);
  EXPECT_EQ(fake.tries, 1);
}

TEST(PlanPages, WhatTheVerifierRefusesIsAnError) {
  report::BesideTensors beside;
  const auto make = [](Bytes) {
    Plan plan;
    plan.outcome = Plan::Outcome::Planned;
    return plan;
  };
  const auto verify = [](const plan::Schedule&, Bytes) -> Result<plan::Verified> {
    return Error{Error::Kind::BadArgument, "no", "op 3"};
  };
  EXPECT_FALSE(plan_for_pages(400_MiB, beside, make, verify));
}

}  // namespace
}  // namespace ullage::cli
