// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/stacks.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::trace {
namespace {

TEST(Stacks, KeepEqualStacksOnce) {
  Stacks stacks;
  const FrameId inner = stacks.add(Frame{"model.py", "forward", 42});
  const FrameId outer = stacks.add(Frame{"train.py", "<module>", 7});
  EXPECT_EQ(stacks.add(Frame{"model.py", "forward", 42}), inner);
  const StackId one = stacks.add(std::vector{inner, outer});
  EXPECT_EQ(stacks.add(std::vector{inner, outer}), one);
  EXPECT_NE(stacks.add(std::vector{outer, inner}), one);
  EXPECT_NE(stacks.add(std::vector{inner}), one);
  EXPECT_EQ(stacks.stack_count(), 4u);
  ASSERT_EQ(stacks.frames(one).size(), 2u);
  EXPECT_EQ(stacks.frame(stacks.frames(one)[0]).function, "forward");
}

TEST(Stacks, NoFramesAreTheStackThatWasNotRecorded) {
  Stacks stacks;
  EXPECT_EQ(stacks.add(std::vector<FrameId>{}), StackId{});
  EXPECT_TRUE(stacks.frames(StackId{}).empty());
}

}  // namespace
}  // namespace ullage::trace
