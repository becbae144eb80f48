// SPDX-License-Identifier: Apache-2.0
#include "pulse/schedule.h"

#include <gtest/gtest.h>

namespace ullage::pulse {
namespace {

TEST(Schedule, HasItsNames) {
  for (const char* name : {"fixed", "linear1cycle", "linear1cycledrop"}) {
    EXPECT_EQ(name_of(*schedule_named(name)), name);
  }
  EXPECT_FALSE(schedule_named("linear"));
}

TEST(Schedule, GoesAsPublished) {
  EXPECT_EQ(rate_factor(Schedule::Fixed, 7, 100), 1);
  EXPECT_NEAR(rate_factor(Schedule::OneCycle, 0, 100), 0.1, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycle, 50, 100), 1, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycle, 75, 100), 0.55, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycleDrop, 0, 100), 0.1, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycleDrop, 45, 100), 1, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycleDrop, 90, 100), 0.1, 1e-12);
  EXPECT_NEAR(rate_factor(Schedule::OneCycleDrop, 95, 100), 0.0505, 1e-12);
}

}  // namespace
}  // namespace ullage::pulse
