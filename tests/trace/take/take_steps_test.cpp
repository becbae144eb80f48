// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_steps.h"

#include "trace/take_training.h"

#include <gtest/gtest.h>

namespace ullage::trace {
namespace {

using namespace test;

TEST(TakeSteps, FindsSteps) {
  Training program;
  std::vector<EventId> ends;
  for (int i = 0; i < 3; ++i) {
    program.train();
    ends.push_back(program.b.now());
  }
  program.zero_grad();
  program.forward();
  const Understood take = program.understood();
  EXPECT_EQ(take.meaning.steps.from, Steps::From::Recorded);
  EXPECT_EQ(take.meaning.steps.whole(), 3u);
  ASSERT_EQ(take.meaning.steps.begins.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    // The free of a storage that the last op used comes between that op and the end of the step.
    EXPECT_LE(take.meaning.steps.begins[i], ends[i - 1]);
    EXPECT_GE(take.meaning.steps.begins[i].value + 1, ends[i - 1].value);
  }
}

TEST(TakeSteps, BelievesToldSteps) {
  Training program;
  std::vector<EventId> begins{EventId{0}};
  for (int i = 0; i < 4; ++i) {
    program.train();
    if (i % 2 == 0) continue;
    program.b.step_told();
    begins.push_back(program.b.now());
  }
  const Understood all = program.understood();
  EXPECT_EQ(all.meaning.steps.whole(), 2u);
  EXPECT_TRUE(all.meaning.steps.last_is_whole);
  program.zero_grad();
  const Understood more = program.understood();
  EXPECT_EQ(more.meaning.steps.begins, begins);
  EXPECT_EQ(more.meaning.steps.whole(), 2u);
}

TEST(TakeSteps, KnowsTheOnlyStepOfAProgram) {
  Training program;
  program.train();
  const Understood take = program.understood();
  EXPECT_EQ(take.of(program.weight), Category::Parameters);
  EXPECT_EQ(take.of(*program.exp_avg), Category::OptimizerState);
  EXPECT_EQ(take.of(program.conv), Category::Activations);
  EXPECT_EQ(take.of(program.running_mean), Category::Buffers);
  EXPECT_EQ(take.of(*program.noise), Category::Inputs);  // made after the model, and alive at the end
  EXPECT_EQ(take.meaning.steps.whole(), 1u);
  EXPECT_EQ(Understood(program.b.take(Take::End::OutOfMemory)).meaning.steps.from, Steps::From::Nothing);
}

}  // namespace
}  // namespace ullage::trace
