// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/use_history.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::store {
namespace {

// A program of one thread. run() runs an op that uses storages by number.
struct OpsInTurn {
  UseHistory history;
  std::vector<UseId> last = std::vector<UseId>(64);
  double clock = 0;

  explicit OpsInTurn(std::size_t most_ops = 1u << 15) : history(most_ops) {}

  OpId run(OpSignature signature, const std::vector<std::size_t>& storages) {
    const OpId id = history.add_op(signature, Seconds{clock += 1});
    for (const std::size_t s : storages) last[s] = history.add_use(last[s]);
    return id;
  }
  void free(std::size_t s) {
    history.add_death(last[s]);
    last[s] = {};
  }
  // Forward through ten layers (weight i, activation 20 + i), backward, update. Backward frees the activations.
  void step() {
    for (std::size_t i = 0; i < 10; ++i) run(100 + i, {i, 20 + i});
    for (std::size_t i = 10; i-- > 0;) {
      run(200 + i, {20 + i, i});
      free(20 + i);
    }
    for (std::size_t i = 0; i < 10; ++i) run(300, {i});
  }
  std::uint64_t ahead(std::size_t s) {
    const auto next = history.next(last[s]);
    return next ? next->at.value - (history.now().value - 1) : 0;
  }
};

TEST(UseHistory, KnowsNothingInTheFirstStep) {
  OpsInTurn program;
  program.step();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_FALSE(program.history.next(program.last[i]).has_value());
}

TEST(UseHistory, TellsTheNextUseFromTheStepBefore) {
  OpsInTurn program;
  program.step();
  program.step();
  for (std::size_t i = 0; i < 10; ++i) program.run(100 + i, {i, 20 + i});
  // After forward: backward goes through the layers from the last to the first.
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(program.ahead(i), 10 - i) << i;
    EXPECT_EQ(program.ahead(20 + i), 10 - i) << i;
    EXPECT_FALSE(program.history.next(program.last[20 + i])->dies);
  }
}

TEST(UseHistory, AParametersNextUseMayLieInTheNextStep) {
  OpsInTurn program;
  for (int i = 0; i < 3; ++i) program.step();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(program.ahead(i), 1 + i) << i;
}

TEST(UseHistory, TellsADeath) {
  OpsInTurn program;
  program.step();
  program.step();
  for (std::size_t i = 0; i < 10; ++i) program.run(100 + i, {i, 20 + i});
  program.run(209, {29, 9});
  const auto next = program.history.next(program.last[29]);
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(next->dies);
}

TEST(UseHistory, FindsItsPlaceAgainAfterADeviation) {
  OpsInTurn program;
  program.step();
  program.step();
  for (std::uint64_t i = 0; i < 25; ++i) program.run(1000 + i, {40});  // an evaluation, which did not occur before
  program.step();
  for (std::size_t i = 0; i < 10; ++i) program.run(100 + i, {i, 20 + i});
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(program.ahead(20 + i), 10 - i) << i;
}

// Layers that are alike, in steps of other sizes: an op has a signature of its own in each step.
TEST(UseHistory, OtherSizesInEachStepAreNoDeviation) {
  OpsInTurn program;
  std::uint64_t sizes = 0;
  const auto forward = [&] {
    sizes += 1000;
    for (std::size_t i = 0; i < 10; ++i) program.run({sizes + 1, 1}, {i, 20 + i});
  };
  const auto backward = [&] {
    for (std::size_t i = 10; i-- > 0;) {
      program.run({sizes + 2, 2}, {20 + i, i});
      program.free(20 + i);
    }
    for (std::size_t i = 0; i < 10; ++i) program.run(3, {i});
  };
  for (int step = 0; step < 3; ++step) forward(), backward();
  forward();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(program.ahead(20 + i), 10 - i) << i;
  backward();
  sizes = 0;  // the sizes of an earlier step do not lead back to that step
  forward(), backward(), forward();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(program.ahead(20 + i), 10 - i) << i;
}

TEST(UseHistory, TimesComeFromTheTwin) {
  OpsInTurn program;
  program.step();
  program.step();
  EXPECT_DOUBLE_EQ(program.history.time_until(5)->count, 5.0);
  EXPECT_FALSE(program.history.time_until(500).has_value());
}

TEST(UseHistory, ForgetsWhatIsLongAgoAndGoesOn) {
  OpsInTurn program(256);
  for (int i = 0; i < 50; ++i) program.step();
  for (std::size_t i = 0; i < 10; ++i) program.run(100 + i, {i, 20 + i});
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(program.ahead(20 + i), 10 - i) << i;
}

TEST(UseHistory, AStorageOfUnknownPastIsNoContradiction) {
  OpsInTurn program;
  program.history.add_death({12345});
  EXPECT_FALSE(program.history.next({12345}).has_value());
  EXPECT_FALSE(program.history.time_until(1).has_value());
}

}  // namespace
}  // namespace ullage::store
