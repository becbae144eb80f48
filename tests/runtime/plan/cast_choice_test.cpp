// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/cast_choice.h"

#include "ullage/plan/model/plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::runtime {
namespace {

using Act = CastChoice::Act;
using Why = CastChoice::Why;

// A program whose steps take as long as the test says.
struct Steps {
  CastChoice choice;
  double now = 100;

  // Runs `count` steps of `seconds` and returns what the border after the last one said. All others must say Stay.
  Act run(int count, double seconds, bool settled = true) {
    Act said = Act::Stay;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(said, Act::Stay) << "border " << i;
      now += seconds;
      said = choice.at_border(Seconds{now}, settled);
    }
    return said;
  }
};

constexpr int kWay = CastChoice::kTimed + 1;  // borders that time one way: a step is timed from border to border

TEST(CastChoice, IsExactIfNoPlanIsMadeOrThePlanCostsLittle) {
  Steps fits;
  EXPECT_EQ(fits.run(50, 1.0), Act::Stay);
  Steps planned;
  planned.choice.exact_plan(plan::kLittleTime);
  EXPECT_EQ(planned.run(50, 1.0), Act::Stay);
  for (const Steps* steps : {&fits, &planned}) {
    EXPECT_FALSE(steps->choice.casts());
    EXPECT_EQ(steps->choice.why(), Why::NotNeeded);
    EXPECT_FALSE(steps->choice.exact_step());
  }
}

TEST(CastChoice, CastsAtTheNextBorderIfNoExactPlanFits) {
  Steps steps;
  EXPECT_EQ(steps.run(3, 1.0), Act::Stay);
  steps.choice.exact_plan(std::nullopt);
  EXPECT_FALSE(steps.choice.casts()) << "in the midst of a step";
  EXPECT_EQ(steps.run(1, 1.0), Act::Cast);
  EXPECT_TRUE(steps.choice.casts());
  EXPECT_EQ(steps.choice.why(), Why::NoExactPlan);
  EXPECT_EQ(steps.run(50, 9.0), Act::Stay) << "nothing else would do";
}

TEST(CastChoice, KeepsTheCheaperOfADearPlanAndBf16) {
  for (const double cast : {0.9, 1.1}) {
    Steps steps;
    steps.choice.exact_plan(0.3);
    EXPECT_EQ(steps.run(kWay, 1.0), Act::Cast);
    EXPECT_EQ(steps.choice.why(), Why::DearPlan);
    EXPECT_TRUE(steps.choice.casts());
    EXPECT_EQ(steps.run(kWay, cast), cast < 1 ? Act::Stay : Act::BeExact);
    EXPECT_EQ(steps.choice.casts(), cast < 1);
    EXPECT_DOUBLE_EQ(steps.choice.exact_step()->count, 1.0);
    EXPECT_NEAR(steps.choice.cast_step()->count, cast, 1e-9);
    steps.choice.exact_plan(0.9);
    EXPECT_EQ(steps.run(50, 5.0), Act::Stay) << "it is chosen once";
  }
}

// A step in which planning observes or works is slower than the others will be.
TEST(CastChoice, TimesOnlyStepsBetweenSettledBorders) {
  Steps steps;
  steps.choice.exact_plan(0.3);
  EXPECT_EQ(steps.run(20, 0.1, /*settled=*/false), Act::Stay);
  EXPECT_EQ(steps.run(1, 0.1), Act::Stay) << "it began before planning was done";
  EXPECT_EQ(steps.run(CastChoice::kTimed - 1, 1.0), Act::Stay);
  EXPECT_EQ(steps.run(1, 0.1, /*settled=*/false), Act::Stay);
  EXPECT_EQ(steps.run(1, 0.1), Act::Stay);
  EXPECT_EQ(steps.run(1, 2.0), Act::Cast);
  EXPECT_DOUBLE_EQ(steps.choice.exact_step()->count, 1.0);
}

}  // namespace
}  // namespace ullage::runtime
