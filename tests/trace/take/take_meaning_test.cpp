// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_meaning.h"

#include "trace/take_training.h"

#include <gtest/gtest.h>

namespace ullage::trace {
namespace {

using namespace test;

TEST(TakeMeaning, SeesLossesGrowThatAreKeptInAList) {
  Training program;
  StorageId second{};
  for (int i = 0; i < 6; ++i) {
    program.train();
    if (i == 1) second = *program.loss;
    program.loss.reset();  // so it is never freed
  }
  program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.of(second), Category::Activations);
  const std::vector<Growth> found = growth(take.take.trace, take.meaning.steps, take.meaning.meanings);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].per_step, 4_B);
  EXPECT_TRUE(found[0].name.starts_with("aten::binary_cross_entropy")) << found[0].name;
}

// An op was running when the gap began, so its end is lost.
TEST(TakeMeaning, ClosesOpsAtAGap) {
  TakeBuilder b;
  b.open({.name = "aten::lost"});
  b.gap(1000);
  TakeBuilder more = b;
  const StorageId after = more.allocate(100_B);
  Take take = more.take();
  take.trace.storages[after.value].op = kNoOp;
  EXPECT_EQ(Understood(take).name(after), "outside any op");
}

TEST(TakeMeaning, OfNothingIsNothing) {
  Take take;
  const TakeMeaning meaning = understand(take);
  EXPECT_TRUE(meaning.categories.empty());
  EXPECT_EQ(meaning.steps.from, Steps::From::Nothing);
}

}  // namespace
}  // namespace ullage::trace
