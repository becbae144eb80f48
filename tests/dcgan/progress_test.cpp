// SPDX-License-Identifier: Apache-2.0
#include "dcgan/progress.h"

#include <gtest/gtest.h>

namespace ullage::dcgan {
namespace {

ProgressState at(std::uint64_t step) {
  ProgressState state;
  state.step = step;
  state.last_step = 100;
  state.losses = {0.53124, 3.2101, 0, 0, 0};
  state.pace.left = Seconds{200};
  return state;
}

TEST(ProgressLine, SaysStepLossesMemoryAndTimeLeft) {
  ProgressState state = at(12);
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  3 min 20 s left");
  state.pace.budgeted = true;
  state.pace.resident = 1800_MiB;
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  1.75 GiB  3 min 20 s left");
  state.pace.budget = 2_GiB;
  EXPECT_EQ(progress_line(state), "step 12/100  D 0.5312  G 3.2101  1.75 GiB of 2.00 GiB  3 min 20 s left");
  state.step = 100;
  state.pace.left = Seconds{0};
  EXPECT_EQ(progress_line(state), "step 100/100  D 0.5312  G 3.2101  1.75 GiB of 2.00 GiB");
}

}  // namespace
}  // namespace ullage::dcgan
