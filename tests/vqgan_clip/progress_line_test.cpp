// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/progress_line.h"

#include <gtest/gtest.h>

namespace ullage::vqgan_clip {
namespace {

TEST(PaintProgress, SaysTheLossAndItsParts) {
  const double one[] = {0.83012}, two[] = {0.83012, -0.1};
  EXPECT_EQ(progress_line(12, 300, one, {false, {}, {}, Seconds{0}}), "iteration 12/300  loss 0.8301");
  EXPECT_EQ(progress_line(0, 300, two, {false, {}, {}, Seconds{0}}), "iteration 0/300  loss 0.7301 (0.8301 -0.1000)");
}

TEST(PaintProgress, SaysMemoryUnderABudget) {
  const double one[] = {0.5};
  EXPECT_EQ(progress_line(1, 2, one, {true, 1_GiB, 2_GiB, Seconds{0}}),
            "iteration 1/2  loss 0.5000  1.00 GiB of 2.00 GiB");
}

}  // namespace
}  // namespace ullage::vqgan_clip
