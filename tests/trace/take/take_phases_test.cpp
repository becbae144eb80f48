// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/take_phases.h"

#include "trace/take_training.h"
#include "ullage/trace/meaning/steps.h"

#include <gtest/gtest.h>

namespace ullage::trace {
namespace {

using namespace test;

TEST(TakePhases, TellsThePhases) {
  Training program({.set_to_none = false});
  const std::uint64_t loading = program.b.ops();
  program.train();
  const std::uint64_t state = program.first_of_step;
  program.b.mode(Mode::NoGrad);
  const std::uint64_t evaluation = program.b.ops();
  const StorageId input = program.b.op1({.name = "aten::randn", .makes = {1000_B}});
  program.b.op({.name = "aten::convolution", .reads = {input, program.weight}, .makes = {2000_B}});
  program.b.mode(Mode::Grad);
  const std::uint64_t zeroing = program.b.ops();
  program.train();
  const Understood take = program.understood();
  for (std::uint64_t i = 0; i < loading; ++i) EXPECT_EQ(take.phase(i), Phase::Loading) << i;
  EXPECT_EQ(take.phase(loading + 2), Phase::Forward);
  EXPECT_EQ(take.phase(state - 1), Phase::Backward);
  for (std::uint64_t i = state; i < evaluation; ++i) EXPECT_EQ(take.phase(i), Phase::Optimizer) << i;
  for (std::uint64_t i = evaluation; i < zeroing; ++i) EXPECT_EQ(take.phase(i), Phase::Evaluation) << i;
  EXPECT_EQ(take.phase(zeroing), Phase::Optimizer);
  EXPECT_EQ(take.phase(zeroing + 1), Phase::Optimizer);
  EXPECT_EQ(take.phase(zeroing + 2), Phase::Forward);
}

TEST(TakePhases, TellsThePhaseOfEachEvent) {
  Training program;
  program.train();
  program.train();
  const Understood take = program.understood();
  const Storage& gradient = take.take.trace.storages[program.gradient->value];
  EXPECT_EQ(take.meaning.phases[gradient.born.value], Phase::Backward);
  for (std::size_t i = 0; i < take.take.details.size(); ++i) {
    EXPECT_EQ(take.meaning.phases[take.take.details[i].begin.value], take.phase(i));
    EXPECT_EQ(take.meaning.phases[take.take.details[i].end.value], take.phase(i));
  }
  EXPECT_EQ(phases(take.take.trace, take.meaning.meanings)[gradient.born.value], Phase::Backward);
}

// Drawing samples from constant noise uses only storages that existed before, as an optimizer does. It must count as
// evaluation.
TEST(TakePhases, TakesSamplingForEvaluation) {
  Training program;
  std::uint64_t op = 0;
  for (int i = 0; i < 3; ++i) {
    program.train();
    program.b.mode(Mode::NoGrad);
    op = program.b.ops();
    const StorageId sample =
        program.b.op1({.name = "aten::convolution", .reads = {program.fixed_noise, program.weight}, .makes = {2000_B}});
    program.b.op({.name = "aten::tanh_", .writes = {sample}});
    program.b.free(sample);
    program.b.mode(Mode::Grad);
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.phase(op), Phase::Evaluation);
  EXPECT_EQ(take.phase(op + 1), Phase::Evaluation);
}

// A norm in training mode writes its statistics also while samples are drawn.
TEST(TakePhases, TakesSamplingWithNormsForEvaluation) {
  Training program;
  std::uint64_t op = 0;
  for (int i = 0; i < 3; ++i) {
    program.train();
    program.b.mode(Mode::NoGrad);
    op = program.b.ops();
    const StorageId sample = program.b.op1({.name = "aten::native_batch_norm",
                                            .reads = {program.fixed_noise, program.weight},
                                            .writes = {program.running_mean},
                                            .makes = {2000_B}});
    program.b.free(sample);
    program.b.mode(Mode::Grad);
  }
  const Understood take = program.understood();
  EXPECT_EQ(take.phase(op), Phase::Evaluation);
  EXPECT_EQ(take.of(program.running_mean), Category::Buffers);
}

TEST(TakePhases, TakesAnEvaluationThatCountsForEvaluation) {
  Training program;
  const StorageId correct = program.b.op1({.name = "aten::zeros", .makes = {8_B}});
  std::uint64_t op = 0;
  for (int i = 0; i < 3; ++i) {
    program.train();
    program.b.mode(Mode::NoGrad);
    op = program.b.ops();
    program.b.op({.name = "aten::add_", .reads = {*program.loss}, .writes = {correct}});
    program.b.mode(Mode::Grad);
  }
  EXPECT_EQ(program.understood().phase(op), Phase::Evaluation);
}

// One forward pass is followed by two backward passes, each with its update.
TEST(TakePhases, TellsABackwardBetweenTwoUpdates) {
  Training program;
  std::uint64_t second = 0;
  for (int i = 0; i < 3; ++i) {
    program.train();
    program.b.mode(Mode::Backward);
    second = program.b.ops();
    program.b.op({.name = "aten::mm", .reads = {program.weight}, .node = "MmBackward0"});
    program.step();
  }
  EXPECT_EQ(program.understood().phase(second), Phase::Backward);
}

// Both gradients are made. Then come one update, a forward pass, and the other update.
TEST(TakePhases, TellsAForwardBetweenTwoUpdates) {
  Training program;
  std::uint64_t between = 0;
  for (int i = 0; i < 3; ++i) {
    program.train();
    between = program.b.ops();
    program.b.op({.name = "aten::convolution",
                  .reads = {program.fixed_noise, program.weight},
                  .saves = {{program.weight, SavedKind::Parameter}}});
    program.step();
  }
  EXPECT_EQ(program.understood().phase(between), Phase::Forward);
}

}  // namespace
}  // namespace ullage::trace
