// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/lifetimes.h"

#include "trace/history.h"
#include "trace/training_program.h"

namespace ullage::trace {
namespace {

constexpr std::uint64_t kNestedLayers = 3;

Bytes live_in(const History& history, Category category, EventId event) {
  Bytes sum;
  for (std::size_t i = 0; i < history.trace.storages.size(); ++i) {
    const Storage& one = history.trace.storages[i];
    if (history.category[i] == category && one.born <= event && event < one.died) sum += one.bytes;
  }
  return sum;
}

// Returns the peak of the live bytes of a category.
Bytes most_in(const History& history, Category category) {
  Bytes most;
  for (std::uint64_t i = 0; i < history.trace.events.size(); ++i) {
    most = std::max(most, live_in(history, category, EventId{i}));
  }
  return most;
}

void expect_training(const History& history) {
  EXPECT_EQ(most_in(history, Category::Gradients), TrainingProgram::kParameter * kNestedLayers);
  EXPECT_EQ(most_in(history, Category::OptimizerState), TrainingProgram::kParameter * kNestedLayers);
  EXPECT_EQ(most_in(history, Category::Parameters), TrainingProgram::kParameter * kNestedLayers);
  EXPECT_EQ(most_in(history, Category::Temporaries), TrainingProgram::kActivation * 2);
}

TEST(Lifetimes, TellGradientsAndOptimizerStateFromTemporaries) {
  TrainingProgram program({});
  program.build_model();
  for (int i = 0; i < 3; ++i) program.train_step();
  const History history(program.recording());
  expect_training(history);
  EXPECT_EQ(most_in(history, Category::Inputs), TrainingProgram::kBatch);
  EXPECT_EQ(most_in(history, Category::Unattributed), Bytes{});
}

TEST(Lifetimes, TakeStacklessAllocationsAmongPythonStacksAsBackward) {
  TrainingProgram program({.native = false});
  program.build_model();
  for (int i = 0; i < 3; ++i) program.train_step();
  const History history(program.recording());
  expect_training(history);
  EXPECT_EQ(history.owners(At::Peak).front().category, Category::Activations);
}

TEST(Lifetimes, FindTheParametersFromBeforeByTheirGradients) {
  TrainingProgram program({});
  program.build_model();
  const std::size_t lost = program.events();
  program.train_step();
  Recording file = program.recording(lost);
  for (Segment& segment : file.devices[0].segments) segment.blocks[0].stack = {};
  const History history(file);
  EXPECT_EQ(history.trace.live_before, TrainingProgram::kParameter * kNestedLayers);
  EXPECT_EQ(history.bytes_by_category(At::Peak).at(Category::Parameters), TrainingProgram::kParameter * kNestedLayers);
  EXPECT_EQ(history.bytes_by_category(At::Peak).count(Category::Unattributed), 0u);
}

TEST(Lifetimes, LeaveWhatNoGradientIsMadeForUnattributed) {
  TrainingProgram program({});
  program.allocate(TrainingProgram::kParameter + 1_B);
  program.allocate(TrainingProgram::kParameter);  // one more of this size than there are gradients
  program.build_model();
  const std::size_t lost = program.events();
  program.train_step();
  Recording file = program.recording(lost);
  for (Segment& segment : file.devices[0].segments) segment.blocks[0].stack = {};
  const History history(file);
  EXPECT_EQ(history.bytes_by_category(At::End).at(Category::Unattributed), (TrainingProgram::kParameter * 2 + 1_B));
  EXPECT_EQ(history.bytes_by_category(At::End).at(Category::Parameters), TrainingProgram::kParameter * kNestedLayers);
}

TEST(Lifetimes, FollowParametersThatAnOptimizerReplaces) {
  RecordingBuilder program;
  const StackId made = program.stack({{"torch/nn/modules/linear.py", "__init__", 1}, {"model.py", "__init__", 2}});
  const StackId update = program.stack({{"my_optimizer.py", "step", 5}, {"train.py", "main", 9}});
  const StackId forward = program.stack({{"model.py", "forward", 7}, {"train.py", "main", 8}});
  Address parameter = program.allocate(1_MiB, made);
  std::optional<Address> state;
  for (int i = 0; i < 3; ++i) {
    program.free(program.allocate(2_MiB, forward), forward);
    const Address momentum = program.allocate(1_MiB, update);
    if (state) program.free(*state, update);
    state = momentum;
    const Address next = program.allocate(1_MiB, update);
    program.free(parameter, update);
    parameter = next;
  }
  const auto bytes = History(program.recording()).bytes_by_category(At::End);
  EXPECT_EQ(bytes.at(Category::Parameters), 1_MiB);
  EXPECT_EQ(bytes.at(Category::OptimizerState), 1_MiB);
}

// A parameter that is freed in a later call of the optimizer is not replaced by state that an earlier call made.
TEST(Lifetimes, GiveNoStateOfAnEarlierCallForAParameter) {
  RecordingBuilder program;
  const StackId made = program.stack({{"torch/nn/modules/linear.py", "__init__", 1}, {"model.py", "__init__", 2}});
  const StackId update = program.stack({{"my_optimizer.py", "step", 5}, {"train.py", "main", 9}});
  const StackId forward = program.stack({{"model.py", "forward", 7}, {"train.py", "main", 8}});
  const Address parameter = program.allocate(1_MiB, made);
  program.free(program.allocate(2_MiB, forward), forward);
  program.allocate(1_MiB, update);
  program.free(program.allocate(2_MiB, forward), forward);
  program.free(parameter, update);
  const auto bytes = History(program.recording()).bytes_by_category(At::End);
  EXPECT_EQ(bytes.at(Category::OptimizerState), 1_MiB);
  EXPECT_EQ(bytes.count(Category::Parameters), 0u);
}

TEST(Lifetimes, CallWhatTheGraphHeldActivations) {
  RecordingBuilder program;
  const StackId script = program.stack({{"train.py", "main", 3}});
  const StackId engine = program.stack({{"??", "torch::autograd::Engine::evaluate_function(int)", 0}});
  const Address held = program.allocate(1_MiB, script);
  program.allocate(2_MiB, script);
  program.free(held, engine);
  const History history(program.recording());
  EXPECT_EQ(history.category[0], Category::Activations);
  EXPECT_EQ(history.category[1], Category::Unattributed);
}

}  // namespace
}  // namespace ullage::trace
