// SPDX-License-Identifier: Apache-2.0
#include "pulse/progress_line.h"

#include <gtest/gtest.h>

namespace ullage::pulse {
namespace {

TEST(SearchLine, SaysFaceStepLossesAndTimeLeft) {
  SearchState state{"face", 0, 12, 100, {{Term::L2, 0.03124}, {Term::GeoCross, 3.1139}}, 3.27974, {}};
  state.pace.left = Seconds{200};
  EXPECT_EQ(progress_line(state), "face  step 12/100  L2 0.0312  GEOCROSS 3.1139  total 3.2797  3 min 20 s left");
  state.more = 3;
  state.pace = {true, 900_MiB, 1_GiB, Seconds{}};
  EXPECT_EQ(progress_line(state),
            "face and 3 more  step 12/100  L2 0.0312  GEOCROSS 3.1139  total 3.2797  900.00 MiB of 1.00 GiB");
}

}  // namespace
}  // namespace ullage::pulse
