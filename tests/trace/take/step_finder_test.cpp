// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/step_finder.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::trace {
namespace {

using Kind = StepFinder::Kind;
using Borders = std::vector<std::uint64_t>;

constexpr std::uint64_t token(std::string_view name) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const char one : name) hash = (hash ^ std::uint64_t(static_cast<unsigned char>(one))) * 1099511628211u;
  return hash;
}

// A net with the parameters [first, first + count).
struct Net {
  std::uint64_t first;
  std::uint64_t count = 3;
};
constexpr Net kGenerator{100}, kCritic{200};

// Feeds a finder with what a program would do, and keeps where the steps really end.
class Program {
 public:
  explicit Program(std::uint64_t most_kept = StepFinder::kMostKept) : finder_(most_kept) {}

  void load(Net net) {
    for (std::uint64_t i = 0; i < net.count; ++i) {
      op("normal_", Kind::Update, StorageId{net.first + i});
      use(net.first + i, false);
    }
  }
  void forward(Net net, bool grad_mode = true) {
    for (std::uint64_t i = 0; i < net.count; ++i) {
      op("convolution");
      use(net.first + i, grad_mode);
      level_ += grad_mode ? 100 : 1;
      op("relu");
    }
    if (!grad_mode) level_ -= net.count;
  }
  void backward(Net net) {
    for (std::uint64_t i = net.count; i-- > 0;) {
      op("convolution_backward", Kind::Backward);
      use(net.first + i, false);
      level_ -= 100;
    }
  }
  void update(Net net) {
    for (std::uint64_t i = 0; i < net.count; ++i) {
      op("lerp_");
      op("addcdiv_", Kind::Update, StorageId{net.first + i});
      use(net.first + i, false);
    }
  }
  void update_as_list(Net net) {
    op("_foreach_addcdiv_", Kind::Update, StorageId{net.first});
    for (std::uint64_t i = 1; i < net.count; ++i) finder_.also_writes(StorageId{net.first + i});
    for (std::uint64_t i = 0; i < net.count; ++i) finder_.parameter_used(StorageId{net.first + i}, false);
  }
  void train(Net net) {
    forward(net);
    backward(net);
    update(net);
  }
  void op(std::string_view name, Kind kind = Kind::Other, StorageId parameter = {}) {
    finder_.op(token(name), kind, level_, parameter);
    ++ops_;
    sure_ = finder_.whole_steps();
  }
  // A turn of a loop that computes: it holds something until its end.
  void turn(int ops) {
    for (int k = 0; k < ops; ++k) {
      op("op" + std::to_string(k));
      if (k == 0) level_ += 10;
    }
    level_ -= 10;
  }
  void use(std::uint64_t parameter, bool followed) { finder_.parameter_used(StorageId{parameter}, followed); }
  void grow(std::uint64_t bytes) { level_ += bytes; }
  void step_ends() { ends_.push_back(ops_); }
  void began_in_midst() { finder_.began_in_midst(); }
  void tell() {
    finder_.step_reported();
    sure_ = finder_.whole_steps();
  }
  void end() {
    finder_.ended();
    sure_ = finder_.whole_steps();
  }

  std::uint64_t sure() const { return sure_; }  // the finder's answer after the newest op
  std::uint64_t ops() const { return ops_; }
  Borders borders() const { return finder_.borders(); }
  Borders true_borders() const {
    Borders all{0};
    all.insert(all.end(), ends_.begin(), ends_.end());
    return all;
  }

 private:
  StepFinder finder_;
  std::uint64_t level_ = 1000;
  std::uint64_t ops_ = 0;
  std::uint64_t sure_ = 0;
  Borders ends_;
};

TEST(StepFinder, FindsTheStepsOfPlainTraining) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 4; ++i) {
    program.train(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 4u);
}

TEST(StepFinder, IsSureOfOneStepOnlyWhenItCameAgain) {
  Program program;
  program.load(kGenerator);
  program.train(kGenerator);
  program.op("randn");
  EXPECT_EQ(program.sure(), 0u);
  program.train(kGenerator);
  program.op("randn");
  EXPECT_EQ(program.sure(), 2u);
}

// A rehearsal must be ended before the next step takes its memory.
TEST(StepFinder, KnowsTheEndOfAStepAtTheFirstOpAfterIt) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) program.train(kGenerator);
  EXPECT_EQ(program.sure(), 2u);
  program.op("randn");
  EXPECT_EQ(program.sure(), 3u);
  EXPECT_EQ(program.borders().size(), 4u);
  EXPECT_EQ(program.borders().back() + 1, program.ops());
}

TEST(StepFinder, TakesAListOpForUpdatesOfAllItsParameters) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    program.forward(kGenerator);
    program.backward(kGenerator);
    program.update_as_list(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 3u);
}

TEST(StepFinder, FindsTheStepOfAGanOfTwoOptimizers) {
  Program program;
  program.load(kGenerator);
  program.load(kCritic);
  for (int i = 0; i < 3; ++i) {
    program.forward(kGenerator);
    program.forward(kCritic);
    program.backward(kCritic);
    program.update(kCritic);
    if (i == 0) program.op("randn");
    EXPECT_LE(program.sure(), std::uint64_t(i));
    program.forward(kCritic);
    program.backward(kGenerator);
    program.update(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 3u);
}

// While the critic is trained, the generator is used but not updated.
TEST(StepFinder, WaitsForTheGeneratorOfACriticUpdatedFiveTimes) {
  Program program;
  program.load(kGenerator);
  program.load(kCritic);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 5; ++k) {
      program.forward(kGenerator, /*grad_mode=*/false);
      program.train(kCritic);
      program.op("clamp_");
      EXPECT_TRUE(i == 2 || program.sure() == 0) << i << " " << k;
    }
    program.forward(kGenerator);
    program.forward(kCritic);
    program.backward(kGenerator);
    program.update(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 3u);
}

TEST(StepFinder, CountsFourBackwardsAndOneUpdateAsOneStep) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) {
      program.forward(kGenerator);
      program.backward(kGenerator);
    }
    program.update(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 3u);
}

// A program may use and scale its weights before it trains them. That is no step.
TEST(StepFinder, TakesUpdatesBeforeTheFirstBackwardForLoading) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    program.forward(kGenerator);
    program.update(kGenerator);
  }
  program.op("randn");
  EXPECT_EQ(program.borders(), Borders{0});
  for (int i = 0; i < 3; ++i) {
    program.train(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
}

// Some optimizers call a closure several times in one call. The ops do not show that, so each closure with its update
// counts as a step.
TEST(StepFinder, TakesEachClosureWithAnUpdateForAStep) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    program.op("stack");
    for (int k = 0; k < 4; ++k) {
      program.train(kGenerator);
      program.step_ends();
    }
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
}

TEST(StepFinder, LosesPatienceWithParametersThatNeverUpdate) {
  constexpr Net kUnusedHead{300};
  Program program;
  program.load(kGenerator);
  program.load(kUnusedHead);
  for (std::uint64_t i = 1; i <= StepFinder::kPatience + 2; ++i) {
    program.forward(kUnusedHead);
    program.train(kGenerator);
    program.op("randn");
    EXPECT_EQ(program.sure(), i < StepFinder::kPatience ? 0 : i) << i;
  }
}

// A gradient penalty makes a new leaf in each step, which no optimizer ever updates.
TEST(StepFinder, DoesNotWaitForInputsThatRequireGrad) {
  Program program;
  program.load(kCritic);
  for (std::uint64_t i = 0; i < 3; ++i) {
    program.op("lerp");
    program.use(1000 + i, true);
    program.op("mul");
    program.use(1000 + i, true);
    program.train(kCritic);
  }
  program.end();
  EXPECT_EQ(program.sure(), 3u);
}

// The first step makes optimizer state; later steps add to existing gradients.
TEST(StepFinder, FindsStepsThoughTheFirstDiffers) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    if (i > 0) program.op("zero_");
    program.forward(kGenerator);
    program.backward(kGenerator);
    if (i > 0) program.op("add_", Kind::Backward);
    if (i == 0) program.op("zeros_like");
    program.update(kGenerator);
    program.step_ends();
    if (i == 1) program.op("zero_");
    EXPECT_EQ(program.sure(), 0u);
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 3u);
}

TEST(StepFinder, FindsStepsWithAnEvaluationInBetween) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 9; ++i) {
    if (i % 3 == 0) {
      for (int k = 0; k < 5; ++k) program.forward(kGenerator, /*grad_mode=*/false);
    }
    program.train(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 9u);
}

// If the finder starts during a forward pass, it sees only the last layers. So the first call of the optimizer updates
// only a few of the parameters that it knows, and later calls update more.
TEST(StepFinder, KnowsTheRestOfAFirstCallThatWasMetInItsMidst) {
  const Net whole{100, 6}, last{105, 1};
  for (const bool told : {true, false}) {
    Program program;
    if (told) program.began_in_midst();
    program.forward(last);
    program.backward(last);
    program.update(last);
    for (int i = 0; i < 3; ++i) {
      program.forward(whole);
      program.backward(whole);
      program.update(whole);
    }
    program.forward(whole);
    EXPECT_EQ(program.sure(), told ? 4u : 0u);
  }
}

TEST(StepFinder, IgnoresAveragesOfTheWeights) {
  constexpr Net kAverage{400};
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 12; ++i) {
    program.train(kGenerator);
    program.step_ends();
    if (i % 4 == 3) program.update(kAverage);
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 12u);
}

// In a mixture of experts, an expert that got no token has no gradient and is not updated in that step.
TEST(StepFinder, KnowsAnOptimizerAgainByMostOfItsParameters) {
  Program program;
  const Net all{100, 10};
  program.load(all);
  for (std::uint64_t i = 0; i < 6; ++i) {
    program.forward(all);
    program.backward(all);
    program.update({100, 10 - i % 4});
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
}

TEST(StepFinder, DoesNotTakeAWarmUpOfItsOwnOptimizerForTheStep) {
  Program program;
  program.load(kGenerator);
  program.load(kCritic);
  program.train(kCritic);  // once, before everything else
  for (int i = 0; i < 20; ++i) {
    program.train(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 20u);
}

TEST(StepFinder, FindsTheTurnsOfALoopWithoutAnOptimizer) {
  Program program;
  for (int i = 0; i < 5; ++i) program.op("load" + std::to_string(i));
  for (int i = 0; i < 30; ++i) program.turn(10);
  const Borders borders = program.borders();
  ASSERT_GT(borders.size(), 25u);
  for (std::size_t i = 2; i < borders.size(); ++i) EXPECT_EQ(borders[i] - borders[i - 1], 10u);
  EXPECT_GE(borders[1], 10u);  // the first step includes the loading
  EXPECT_GE(program.sure(), 3u);
  EXPECT_LE(program.sure(), borders.size() - 1);
}

// Equal layers look like turns of a loop, but each uses other parameters.
TEST(StepFinder, DoesNotTakeTheLayersOfAPassForSteps) {
  Program program;
  const Net deep{100, 200};
  program.load(deep);
  program.forward(deep, /*grad_mode=*/false);
  EXPECT_EQ(program.sure(), 0u);
  for (int i = 0; i < 20; ++i) program.forward(deep, /*grad_mode=*/false);
  EXPECT_GT(program.sure(), 0u);
  const Borders borders = program.borders();
  ASSERT_GT(borders.size(), 10u);
  for (std::size_t i = 2; i < borders.size(); ++i) EXPECT_EQ(borders[i] - borders[i - 1], 400u);
}

// A loop that makes layers is as regular as one that trains, and the first pass takes far more memory than the layers
// do. So each layer seems to begin at about the same level.
// A DataLoader without workers makes a batch of 200 samples. The steps before were not observed.
TEST(StepFinder, DoesNotTakeTheSamplesOfABatchForStepsIfAnOptimizerIsKnown) {
  const auto whole_steps = [](bool known) {
    StepFinder finder;
    finder.began_in_midst();
    if (known) finder.optimizer_was_called();
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      finder.op(token("slice"), Kind::Other, 100);
      finder.op(token("to_copy"), Kind::Other, 150);
    }
    return finder.whole_steps();
  };
  EXPECT_GT(whole_steps(false), 0u);
  EXPECT_EQ(whole_steps(true), 0u);
}

TEST(StepFinder, DoesNotTakeTheMakingOfLayersForSteps) {
  Program program;
  const Net deep{100, 120};
  for (std::uint64_t i = 0; i < deep.count; ++i) {
    for (const char* name : {"empty", "detach", "ones", "zeros", "fill_", "zeros", "empty", "detach"}) program.op(name);
    program.load({deep.first + i, 1});
    program.grow(1);
  }
  program.train(deep);
  program.step_ends();
  EXPECT_EQ(program.sure(), 0u);
  program.train(deep);
  program.step_ends();
  program.train(deep);
  program.step_ends();
  program.end();
  EXPECT_EQ(program.sure(), 3u);
  EXPECT_EQ(program.borders(), program.true_borders());
}

// A program may accumulate the gradients of many batches before its first update.
TEST(StepFinder, DoesNotTakeBatchesBeforeTheFirstUpdateForSteps) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 40; ++k) {
      program.forward(kGenerator);
      program.backward(kGenerator);
      EXPECT_TRUE(i == 2 || program.sure() == 0) << i << " " << k;
    }
    program.update(kGenerator);
    program.step_ends();
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
}

TEST(StepFinder, FindsNothingInAProgramThatNeverRepeats) {
  Program program;
  for (int i = 0; i < 2000; ++i) program.op("op" + std::to_string(i));
  program.end();
  EXPECT_EQ(program.borders(), Borders{0});
  EXPECT_EQ(program.sure(), 0u);
}

// Sequences have another length in each step, so no two steps are alike. After kPatience calls of the optimizer, the
// finder takes them for steps anyway.
TEST(StepFinder, LosesPatienceWithStepsThatAllDiffer) {
  Program program;
  program.load(kGenerator);
  for (std::uint64_t i = 1; i <= StepFinder::kPatience + 2; ++i) {
    program.forward(kGenerator);
    for (std::uint64_t k = 0; k < i; ++k) program.op("lstm_backward", Kind::Backward);
    program.backward(kGenerator);
    program.update(kGenerator);
    program.step_ends();
    program.op("randn");
    EXPECT_EQ(program.sure(), i < StepFinder::kPatience ? 0 : i) << i;
  }
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
}

TEST(StepFinder, KnowsTheOnlyStepOfAProgramThatEndsBeforeASecond) {
  Program program;
  program.load(kGenerator);
  program.train(kGenerator);
  program.step_ends();
  EXPECT_EQ(program.borders(), Borders{0});  // more updates may come
  program.end();
  EXPECT_EQ(program.borders(), program.true_borders());
  EXPECT_EQ(program.sure(), 0u);
}

TEST(StepFinder, BelievesWhatItIsToldBeforeAllElse) {
  Program program;
  program.load(kGenerator);
  for (int i = 0; i < 3; ++i) {
    program.train(kGenerator);
    program.train(kGenerator);
    program.tell();
    program.step_ends();
    EXPECT_EQ(program.sure(), std::uint64_t(i) + 1);
  }
  EXPECT_EQ(program.borders(), program.true_borders());
}

TEST(StepFinder, NeverGoesBack) {
  Program program;
  program.load(kGenerator);
  program.load(kCritic);
  std::uint64_t sure = 0;
  for (int i = 0; i < 40; ++i) {
    program.train(kGenerator);
    if (i % 15 == 14) program.train(kCritic);  // a second optimizer is called late and seldom
    EXPECT_GE(program.sure(), sure);
    sure = program.sure();
  }
  EXPECT_GT(sure, 0u);
}

TEST(StepFinder, KeepsSoManyBordersAndCountsOn) {
  Program program(/*most_kept=*/16);
  program.load(kGenerator);
  for (int i = 0; i < 1000; ++i) program.train(kGenerator);
  program.end();
  EXPECT_EQ(program.borders().size(), 17u);
  EXPECT_EQ(program.sure(), 1000u);
}

TEST(StepFinder, KeepsSoManyOpsOfALoopWithoutAnOptimizer) {
  Program program(/*most_kept=*/100);
  for (int i = 0; i < 1000; ++i) program.turn(10);
  EXPECT_LE(program.borders().back(), 100u);
  EXPECT_GE(program.sure(), 3u);
}

// transformers makes a model's layers on the meta device before it loads the weights.
TEST(StepFinder, TakesNoLoopThatHoldsNothingForSteps) {
  Program program;
  const auto layers = [&](int count, std::uint64_t bytes) {
    for (int layer = 0; layer < count; ++layer) {
      for (const char* name : {"empty", "detach", "uniform_", "empty", "detach", "uniform_", "ones", "detach"}) {
        program.op(name);
        if (std::string_view(name) == "empty") program.grow(bytes);
      }
      program.grow(0 - 2 * bytes);
    }
  };
  layers(40, 0);
  program.grow(8);  // a first tensor, made after the layers
  program.op("arange");
  EXPECT_EQ(program.sure(), 0u);
  layers(200, 100);  // the same loop, if each turn holds something, is one of inference
  EXPECT_GT(program.sure(), 0u);
}

}  // namespace
}  // namespace ullage::trace
