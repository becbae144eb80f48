// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/outside_growth.h"

#include <gtest/gtest.h>

namespace ullage::store {
namespace {

TEST(OutsideGrowth, FindsASteadyLeak) {
  OutsideGrowth growth;
  for (std::uint64_t step = 0; step < OutsideGrowth::kWindow; ++step) {
    EXPECT_FALSE(growth.per_step()) << "too few steps";
    growth.add(StepId{step}, 130_MiB + 3_MiB * step);
  }
  EXPECT_EQ(*growth.per_step(), 3_MiB);
  EXPECT_EQ(*growth.steps_left(31_MiB), 10u);
  EXPECT_EQ(*growth.steps_left(0_B), 0u);
}

TEST(OutsideGrowth, IsSilentWithinNoiseAndWhenItStops) {
  OutsideGrowth growth;
  for (std::uint64_t step = 0; step < 40; ++step) growth.add(StepId{step}, 130_MiB + 4_KiB * (step % 5));
  EXPECT_FALSE(growth.per_step());
  for (std::uint64_t step = 40; step < 50; ++step) growth.add(StepId{step}, 130_MiB + 3_MiB * (step - 40));
  EXPECT_TRUE(growth.per_step());
  for (std::uint64_t step = 50; step < 70; ++step) growth.add(StepId{step}, 160_MiB);
  EXPECT_FALSE(growth.per_step()) << "only the last steps count";
}

}  // namespace
}  // namespace ullage::store
