// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/steps.h"

#include "trace/history.h"
#include "trace/training_program.h"

namespace ullage::trace {
namespace {

TrainingProgram trained(TrainingProgram::Options options, int steps) {
  TrainingProgram program(options);
  program.build_model();
  for (int i = 0; i < steps; ++i) program.train_step();
  return program;
}

// Checks that there are `count` steps, and that all between the first and the last have the same number of events.
void expect_equal_steps(const Steps& steps, std::size_t count) {
  ASSERT_EQ(steps.begins.size(), count);
  for (std::size_t i = 3; i < count; ++i) {
    EXPECT_EQ(steps.begins[i].value - steps.begins[i - 1].value, steps.begins[2].value - steps.begins[1].value);
  }
}

TEST(Steps, AreFoundByAnnotations) {
  const History history(trained({.annotations = true}, 6).recording());
  EXPECT_EQ(history.steps.from, Steps::From::Annotations);
  expect_equal_steps(history.steps, 7);
  EXPECT_EQ(history.steps.whole(), 6u);  // what follows the last call may be an unfinished step
}

TEST(Steps, AreFoundByStacks) {
  const History history(trained({}, 6).recording());
  EXPECT_EQ(history.steps.from, Steps::From::Stacks);
  EXPECT_EQ(history.steps.begins.size(), 7u);
}

TEST(Steps, AreFoundByStacksOfPythonAlone) {
  const History history(trained({.native = false}, 6).recording());
  EXPECT_EQ(history.steps.from, Steps::From::Stacks);
  EXPECT_EQ(history.steps.begins.size(), 7u);
}

TEST(Steps, EndWithTheOptimizerCalledLeastOften) {
  for (const bool annotations : {false, true}) {
    TrainingProgram program({.annotations = annotations});
    program.build_model();
    for (int i = 0; i < 5; ++i) {
      program.train_discriminator();
      program.train_discriminator();
      program.train_step();
    }
    const History history(program.recording());
    expect_equal_steps(history.steps, 6);
    EXPECT_EQ(history.steps.whole(), 5u);
  }
}

TEST(Steps, OfTwoOptimizersInTurnAreOneForBoth) {
  TrainingProgram program({});
  program.build_model();
  std::size_t first_ends = 0;
  for (int i = 0; i < 5; ++i) {
    program.train_discriminator();
    if (i == 0) first_ends = program.events();
    program.train_step();
  }
  const History history(program.recording());
  ASSERT_EQ(history.steps.begins.size(), 6u);
  EXPECT_GT(history.steps.begins[1].value, first_ends);
}

// Nothing is allocated between the calls of the two optimizers. The second one is called in every other turn.
TEST(Steps, EndWithARareOptimizerCalledRightBehindAnother) {
  RecordingBuilder program;
  const auto step_from = [&](std::uint64_t line) {
    return program.stack({{"torch/optim/sgd.py", "step", 1}, {"train.py", "main", line}});
  };
  const StackId often = step_from(11), rarely = step_from(12);
  const StackId forward = program.stack({{"model.py", "forward", 3}, {"train.py", "main", 9}});
  for (int i = 0; i < 8; ++i) {
    program.free(program.allocate(1_MiB, forward), forward);
    program.free(program.allocate(512_B, often), often);
    if (i % 2 == 1) program.free(program.allocate(1_KiB, rarely), rarely);
  }
  program.free(program.allocate(1_MiB, forward), forward);
  const History history(program.recording());
  EXPECT_EQ(history.steps.from, Steps::From::Stacks);
  EXPECT_EQ(history.steps.begins.size(), 5u);
}

TEST(Steps, AreFoundByTheirPeriod) {
  TrainingProgram program({});
  program.build_model();
  for (int i = 0; i < 8; ++i) program.evaluate_step(false);
  const History history(program.recording());
  EXPECT_EQ(history.steps.from, Steps::From::Period);
  EXPECT_GE(history.steps.whole(), 7u);
}

TEST(Steps, OfAnEvaluationAfterTrainingAreFoundToo) {
  TrainingProgram program = trained({}, 3);
  for (int i = 0; i < 8; ++i) program.evaluate_step(false);
  const History history(program.recording());
  EXPECT_EQ(history.steps.from, Steps::From::Stacks);
  EXPECT_GE(history.steps.whole(), 10u);
}

TEST(Steps, AreNotTheLayersOfOnePass) {
  TrainingProgram program({.layers = 24});
  program.build_model();
  program.evaluate_step(true);
  const History history(program.recording());
  EXPECT_EQ(history.steps.begins.size(), 0u);
}

// As above, for a pass that saves nothing: each layer begins at the same level, as a step does.
TEST(Steps, AreNotTheLayersOfAPassThatKeepsNothing) {
  RecordingBuilder program;
  const Frame script{"train.py", "main", 9};
  program.allocate(1_MiB, program.stack({{"model.py", "forward", 1}, script}));
  for (int layer = 0; layer < 24; ++layer) {
    for (std::uint64_t line = 0; line < 10; ++line) {
      const StackId stack = program.stack({{"block.py", "forward", line}, {"model.py", "forward", 2}, script});
      program.free(program.allocate(1_MiB, stack), stack);
    }
  }
  program.allocate(1_MiB, program.stack({{"model.py", "forward", 3}, script}));
  EXPECT_EQ(History(program.recording()).steps.begins.size(), 0u);
}

TEST(Steps, AreNoneWithoutARepetition) {
  RecordingBuilder program;
  for (std::uint64_t i = 0; i < 200; ++i) {
    program.allocate(Bytes{512 * (i * i % 97 + 1)}, program.stack({{"train.py", "main", i * i % 89}}));
  }
  EXPECT_EQ(History(program.recording()).steps.from, Steps::From::Nothing);
}

TEST(Growth, IsNoneInASteadyProgram) {
  for (const bool annotations : {false, true}) {
    EXPECT_TRUE(History(trained({.annotations = annotations}, 8).recording()).growth().empty());
    EXPECT_TRUE(History(trained({.annotations = annotations, .grow = true}, 8).recording()).growth().empty());
  }
}

TEST(Growth, IsNoneInTwoSteps) { EXPECT_TRUE(History(trained({.keep_loss = true}, 2).recording()).growth().empty()); }

TEST(Growth, FindsTheStackOfALeak) {
  const History history(trained({.keep_loss = true}, 8).recording());
  const std::vector<Growth> growth = history.growth();
  ASSERT_EQ(growth.size(), 2u);
  EXPECT_EQ(growth[0].name, "model.py:31 forward");
  EXPECT_EQ(growth[0].per_step, 2_MiB);
  EXPECT_EQ(growth[0].steps, growth[0].of_steps);
  EXPECT_EQ(growth[0].total, 2_MiB * growth[0].steps);
  EXPECT_EQ(growth[0].of_steps, 7u);  // all but the first
  EXPECT_EQ(growth[1].name, "train.py:22 main");
  EXPECT_EQ(growth[1].per_step, TrainingProgram::kLoss);
}

TEST(Growth, FindsAnEvaluationThatKeepsItsGraph) {
  TrainingProgram program = trained({}, 4);
  for (int i = 0; i < 8; ++i) program.evaluate_step(true);
  const std::vector<Growth> growth = History(program.recording()).growth();
  ASSERT_FALSE(growth.empty());
  EXPECT_EQ(growth[0].name, "layer.py:7 forward");
  EXPECT_EQ(growth[0].per_step, TrainingProgram::kActivation * 3);
}

TEST(Growth, IsNotWhatIsKeptInTwoStepsAlone) {
  for (const int steps_behind : {0, 1, 2}) {
    TrainingProgram program = trained({}, 8);
    const StackId line = program.stack({{"/home/me/train.py", "main", 77}});
    for (int i = 0; i < 2; ++i) {
      program.allocate(1_MiB, line);
      program.train_step();
    }
    for (int i = 0; i < steps_behind; ++i) program.train_step();
    EXPECT_TRUE(History(program.recording()).growth().empty()) << steps_behind;
  }
}

TEST(Growth, EndsWhereItIsGivenBack) {
  TrainingProgram program({});
  program.build_model();
  const StackId line = program.stack({{"/home/me/train.py", "main", 77}});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Address> outputs;
    for (int i = 0; i < 8; ++i) {
      program.train_step();
      outputs.push_back(program.allocate(1_MiB, line));
    }
    for (const Address one : outputs) program.free(one, line);
  }
  const std::vector<Growth> growth = History(program.recording()).growth();
  ASSERT_EQ(growth.size(), 1u);
  EXPECT_EQ(growth[0].name, "train.py:77 main");
  EXPECT_LE(growth[0].total, 8_MiB);
  EXPECT_GE(growth[0].total, 5_MiB);
}

// The program keeps the last three batches for reuse. They differ in size, but that is not growth.
TEST(Growth, IsNotACacheThatIsFull) {
  RecordingBuilder program;
  const StackId line = program.stack({{"train.py", "main", 3}});
  const StackId step = program.stack({{"torch/optim/sgd.py", "step", 1}, {"train.py", "main", 9}});
  std::vector<Address> cache;
  for (std::uint64_t i = 0; i < 20; ++i) {
    cache.push_back(program.allocate(1_MiB, line));
    if (cache.size() > 3) {
      program.free(cache.front(), line);
      cache.erase(cache.begin());
    }
    program.free(program.allocate(512_B, step), step);
    program.free(program.allocate(512_B, line), line);
  }
  const History history(program.recording());
  EXPECT_GE(history.steps.whole(), 19u);
  EXPECT_TRUE(history.growth().empty());
}

TEST(Phases, AreThoseOfTheStacksElseOfTheAnnotationElseOfTheEventBefore) {
  RecordingBuilder program;
  const StackId forward = program.stack({{"model.py", "forward", 3}});
  const StackId native = program.stack({{"??", "c10::something()", 0}});
  program.allocate(1_MiB, forward);  // two events: its segment, itself
  program.allocate(1_MiB, native);
  program.annotate("Optimizer.step#SGD.step", true);
  program.allocate(1_MiB, native);
  program.allocate(1_MiB, forward);
  program.annotate("Optimizer.step#SGD.step", false);
  program.allocate(1_MiB);
  const History history(program.recording());
  const std::vector<Phase> expected{Phase::Forward,   Phase::Forward, Phase::Forward, Phase::Forward, Phase::Optimizer,
                                    Phase::Optimizer, Phase::Forward, Phase::Forward, Phase::Forward, Phase::Forward};
  EXPECT_EQ(phases(history.trace, history.meanings), expected);
}

}  // namespace
}  // namespace ullage::trace
