// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/budget.h"

#include <gtest/gtest.h>

namespace ullage::store {
namespace {

Bytes resident = 0_B;
Bytes others = 0_B;
Bytes read_resident() { return resident; }

struct OtherProcesses final : Tree {
  Others others() override { return {store::others, expects, guesses, moves}; }
  std::uint64_t processes() override { return count_of_others; }
  bool count(Bytes lacks) override {
    store::others = counted;
    lacking = lacks;
    return can_count;
  }
  void lease(Bytes bytes) override { leased += bytes; }
  void end_lease(Bytes bytes, Bytes took) override { leased -= bytes, taken += took; }
  Bytes inherited() override { return inherits; }
  bool make_way(Bytes, bool) override { return true; }
  void refused(Bytes) override {}
  void forget_announced() override {}
  bool is_counted() override { return true; }
  void forking(bool) override {}
  void forked() override {}
  void diverged(Bytes) override {}
  Bytes largest_program() override { return {}; }
  bool others_grow() override { return grow; }
  bool share_pressure(bool own) override { return own; }
  bool others_are_followed() override { return true; }
  void copying(Bytes) override {}
  void copied(Bytes) override {}
  void left_to_children(Bytes) override {}
  void used_inherited(Bytes) override {}
  bool can_count = true, grow = false;
  Bytes inherits, guesses, moves, counted, expects, leased, taken, lacking;
  std::uint64_t count_of_others = 0;
};

class BudgetTest : public testing::Test {
 protected:
  void SetUp() override { resident = 105_MiB, others = 0_B; }
  // Enough for the reserve to follow what is outside.
  void end_four_steps() {
    for (int step = 0; step < 4; ++step) {
      budget.resident_limit(0_B);
      budget.end_step();
    }
  }
  OtherProcesses tree;
  Budget budget{1_GiB, 105_MiB, Budget::kWarmUp, &read_resident, &tree};
};

TEST_F(BudgetTest, SetsAsideWhatLibrariesWillTake) {
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (105_MiB + Budget::kWarmUp + Budget::kMargin));
  resident = 134_MiB + 500_MiB;
  EXPECT_EQ(budget.resident_limit(500_MiB), 1_GiB - (105_MiB + Budget::kWarmUp + Budget::kMargin)) << "as expected";
  EXPECT_EQ(budget.outside(), 134_MiB);
}

TEST_F(BudgetTest, GivesWayWhenTheOutsideGrows) {
  resident = 700_MiB;
  EXPECT_EQ(budget.resident_limit(500_MiB), 1_GiB - (200_MiB + Budget::kMargin));
}

TEST_F(BudgetTest, KeepsRoomForCharges) {
  const Bytes before = budget.resident_limit(0_B);
  budget.charge(100_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), before - 100_MiB);
  resident = 105_MiB + 100_MiB;  // the consumer has taken the charged bytes, which must not be counted twice
  EXPECT_EQ(budget.resident_limit(0_B), before - 100_MiB);
  budget.discharge(100_MiB);
  resident = 105_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before);
}

// On a card the libraries take what is reserved without asking. So the least budget must have room for it, unused or
// not.
TEST(BudgetOfACard, LeastHoldsItsReserve) {
  resident = 105_MiB, others = 0_B;
  Budget card{1_GiB, 105_MiB, 64_MiB, &read_resident, nullptr, /*lends=*/false};
  EXPECT_FALSE(card.lend());
  const Bytes beside = 1_GiB - card.resident_limit(0_B);
  EXPECT_EQ(beside, 105_MiB + 64_MiB + Budget::kMargin);
  EXPECT_EQ(card.note_least(300_MiB), 300_MiB + beside + Budget::kLeastAllowance);
  EXPECT_EQ(card.note_least(301_MiB), 301_MiB + beside + Budget::kLeastAllowance) << "nobody asked for the limit";
}

// A program that asks for too much may catch the error and go on.
TEST(BudgetOfACard, LeastHoldsNoRequestThatWasRefused) {
  resident = 105_MiB, others = 0_B;
  Budget card{1_GiB, 105_MiB, 64_MiB, &read_resident, nullptr, /*lends=*/false};
  const Bytes beside = 1_GiB - card.resident_limit(0_B);
  EXPECT_EQ(card.least_with(160_GiB), 160_GiB + beside + Budget::kLeastAllowance);
  EXPECT_EQ(card.note_least(300_MiB), 300_MiB + beside + Budget::kLeastAllowance);
  EXPECT_EQ(card.least_with(200_MiB), 300_MiB + beside + Budget::kLeastAllowance);
}

// PyTorch's allocator on a card is granted more than it needs at once. What it has not taken is taken back before a
// refusal, so it is no part of the least.
TEST(BudgetOfACard, LeastHoldsOfAGrantOnlyWhatStands) {
  resident = 105_MiB, others = 0_B;
  Budget card{1_GiB, 105_MiB, 64_MiB, &read_resident, nullptr, /*lends=*/false};
  const Bytes beside = 1_GiB - card.resident_limit(0_B);
  card.charge(32_MiB);
  EXPECT_EQ(1_GiB - card.resident_limit(0_B), beside + 32_MiB) << "the pool may not have it";
  EXPECT_EQ(card.note_least(300_MiB), 300_MiB + beside + Budget::kLeastAllowance);
  resident = 111_MiB;
  (void)card.resident_limit(0_B);
  EXPECT_EQ(card.note_least(300_MiB), 300_MiB + beside + 6_MiB + Budget::kLeastAllowance);
  card.discharge(26_MiB);
  EXPECT_EQ(1_GiB - card.resident_limit(0_B), beside + 6_MiB);
}

TEST_F(BudgetTest, LeavesRoomForWhatIsForeseen) {
  const Bytes before = budget.resident_limit(0_B);
  budget.foresee(400_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (400_MiB + Budget::kMargin));
  resident = 300_MiB;  // a part of it has come and must not be counted twice
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (400_MiB + Budget::kMargin));
  resident = 105_MiB;
  budget.foresee(0_B);
  EXPECT_EQ(budget.resident_limit(0_B), before);
}

TEST_F(BudgetTest, LendsWhatIsForeseenAndCountsItToNoLeast) {
  resident = 160_MiB;
  const Bytes limit = budget.resident_limit(0_B), least = budget.note_least(0_B);
  budget.foresee(400_MiB);
  EXPECT_LT(budget.resident_limit(0_B), limit);
  EXPECT_EQ(budget.note_least(0_B), least);
  EXPECT_TRUE(budget.lend());
  EXPECT_EQ(budget.resident_limit(0_B), limit);
  EXPECT_FALSE(budget.lend());
}

// The outside has grown, for example because a heap kept freed bytes. A charge must come on top of that, because the
// heap does not always reuse them.
TEST_F(BudgetTest, ChargesComeOnTopOfAnOutsideThatGrew) {
  resident = 205_MiB;
  const Bytes before = budget.resident_limit(0_B);
  budget.charge(32_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), before - 32_MiB);
  resident = 237_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 32_MiB) << "counted twice";
  budget.charge(8_MiB);
  budget.discharge(32_MiB);
  EXPECT_EQ(budget.expected_outside(), 213_MiB);
  budget.discharge(8_MiB);
  EXPECT_EQ(budget.expected_outside(), 105_MiB + Budget::kWarmUp);
}

TEST_F(BudgetTest, CountsTheOtherProcessesOfTheTree) {
  const Bytes before = budget.resident_limit(0_B);
  others = 50_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 50_MiB);
}

TEST_F(BudgetTest, HasTheOthersCountedBeforeARefusal) {
  const Bytes before = budget.resident_limit(0_B);
  tree.counted = 50_MiB;
  EXPECT_TRUE(budget.recount(500_MiB));
  EXPECT_EQ(budget.resident_limit(0_B), before - 50_MiB);
  tree.can_count = false;
  EXPECT_FALSE(budget.recount(500_MiB));
  budget.restate(0_B);
  tree.can_count = true;
  EXPECT_FALSE(budget.recount(500_MiB)) << "without a budget nothing is refused";
  EXPECT_FALSE(Budget(1_GiB, 105_MiB, Budget::kWarmUp, &read_resident, nullptr).recount(0_B)) << "alone";
}

TEST_F(BudgetTest, TellsTheOthersWhatItLacks) {
  resident = 105_MiB + 300_MiB;
  budget.resident_limit(300_MiB);
  budget.recount(340_MiB);
  EXPECT_EQ(tree.lacking, 40_MiB + Budget::kWarmUp) << "the reserve is kept too";
  budget.lend();
  budget.recount(340_MiB);
  EXPECT_EQ(tree.lacking, 40_MiB);
  budget.foresee(400_MiB);
  budget.recount(340_MiB);
  EXPECT_EQ(tree.lacking, 40_MiB) << "what was announced may have been touched and given back";
  budget.foresee(0_B);
  budget.recount(1_GiB - 105_MiB - Budget::kMargin);
  EXPECT_EQ(tree.lacking, 1_GiB - 105_MiB - Budget::kMargin - 300_MiB);
  budget.recount(1_GiB - 105_MiB - Budget::kMargin + 1_B);
  EXPECT_EQ(tree.lacking, 0_B) << "nobody moves anything for what can never be served";
}

TEST_F(BudgetTest, TellsTheOthersWhatItIsAboutToTake) {
  budget.lease(30_MiB);
  EXPECT_EQ(tree.leased, 30_MiB);
  budget.end_lease(30_MiB, 20_MiB);
  EXPECT_EQ(tree.leased, 0_B);
  EXPECT_EQ(tree.taken, 20_MiB);
}

TEST_F(BudgetTest, AChildsLibrariesHaveWhatTheyNeed) {
  budget.foresee(400_MiB);  // of the parent, whose watch would end it
  budget.expect_nothing();
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (105_MiB + Budget::kMargin));
  budget.charge(200_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (305_MiB + Budget::kMargin));
}

TEST_F(BudgetTest, LendsWhatIsSetAsideAndNotUsed) {
  resident = 115_MiB;
  budget.resident_limit(0_B);
  EXPECT_TRUE(budget.lend());
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (115_MiB + Budget::kMargin));
  EXPECT_FALSE(budget.lend()) << "twice";
  EXPECT_EQ(budget.expected_at_start(), 105_MiB + Budget::kWarmUp);
}

TEST_F(BudgetTest, LendsNothingOfWhatIsUsedOrCharged) {
  resident = 105_MiB + Budget::kWarmUp;
  budget.resident_limit(0_B);
  EXPECT_FALSE(budget.lend());
  resident = 105_MiB;
  budget.resident_limit(0_B);
  budget.charge(100_MiB);
  EXPECT_TRUE(budget.lend());
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (205_MiB + Budget::kMargin)) << "the charge stays";
}

TEST_F(BudgetTest, SetsAsideWhatStepsShowOnceTheFirstHaveEnded) {
  const auto step_with = [&](Bytes most) {
    resident = most;
    budget.resident_limit(0_B);
    resident = 110_MiB;
    budget.resident_limit(0_B);
    budget.end_step();
    return 1_GiB - budget.resident_limit(0_B) - Budget::kMargin;
  };
  const Bytes first = 105_MiB + Budget::kWarmUp;
  EXPECT_EQ(step_with(150_MiB), first);
  EXPECT_EQ(step_with(120_MiB), first);
  EXPECT_EQ(step_with(118_MiB), 118_MiB);
  EXPECT_EQ(step_with(112_MiB), 118_MiB) << "the most of any";
  EXPECT_EQ(step_with(125_MiB), 125_MiB);
}

TEST_F(BudgetTest, WhatIsExpectedAfterAStepHoldsWhatTheLastOneTook) {
  for (std::uint64_t step = 0; step < Budget::kFirstSteps; ++step) {
    resident = 150_MiB;
    budget.resident_limit(0_B);
    budget.end_step();
  }
  resident = 120_MiB;  // at the border less is outside
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.expected_outside(), 105_MiB + Budget::kWarmUp);
  EXPECT_EQ(budget.expected_after_step(), 150_MiB);
  resident = 151_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.expected_after_step(), 151_MiB);
}

TEST_F(BudgetTest, AStepInWhichNobodyAskedShowsNothing) {
  for (std::uint64_t step = 0; step <= Budget::kFirstSteps; ++step) budget.end_step();
  EXPECT_EQ(budget.expected_outside(), 105_MiB + Budget::kWarmUp);
  resident = 120_MiB;
  budget.resident_limit(0_B);
  budget.end_step();
  EXPECT_EQ(budget.expected_outside(), 120_MiB);
}

TEST_F(BudgetTest, AChargeIsNoPartOfWhatAStepShows) {
  for (int step = 0; step < 3; ++step) {
    budget.charge(40_MiB);
    resident = 110_MiB + 40_MiB;
    budget.resident_limit(0_B);
    budget.discharge(40_MiB);
    resident = 110_MiB;
    budget.resident_limit(0_B);
    budget.end_step();
  }
  EXPECT_EQ(budget.expected_outside(), 110_MiB);
}

TEST_F(BudgetTest, WhatIsTakenFromTheReserveIsNoPartOfWhatAStepShows) {
  const auto step = [&](Bytes taken) {
    budget.take_from_reserve(taken);
    resident = 110_MiB + taken;
    budget.resident_limit(0_B);
    budget.take_from_reserve({});
    resident = 110_MiB;
    budget.resident_limit(0_B);
    budget.end_step();
  };
  for (int i = 0; i < 3; ++i) step(20_MiB);
  EXPECT_EQ(budget.expected_outside(), 110_MiB);
  step(20_MiB);
  EXPECT_EQ(budget.expected_outside(), 110_MiB);
}

// The least budget is the highest sum of pool and outside at one moment, not the sum of their separate peaks.
TEST_F(BudgetTest, TheLeastIsTheMostThatWasNeededTogether) {
  const Bytes start = Budget::least(105_MiB, Budget::kWarmUp) + Budget::kLeastAllowance;
  const Bytes more = Budget::kMargin + Budget::kLeastAllowance;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(1_MiB), start) << "no run begins below";
  resident = 400_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(10_MiB), 410_MiB + more);
  resident = 120_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(280_MiB), 410_MiB + more);
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(300_MiB), 420_MiB + more);
  budget.leave_out_of_least(true);
  resident = 300_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(300_MiB), 420_MiB + more) << "planning gives way";
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(310_MiB), 430_MiB + more) << "the pool does not";
}

TEST_F(BudgetTest, TheLeastHoldsTheOtherProcessesButNotWhatIsOnlyExpectedOrGuessedOfThem) {
  others = 50_MiB;
  tree.expects = 6_MiB, tree.guesses = 30_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(100_MiB), 105_MiB + 14_MiB + 100_MiB + Budget::kMargin + Budget::kLeastAllowance);
  tree.count_of_others = 4;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.note_least(100_MiB), 105_MiB + 14_MiB + 100_MiB + Budget::kMargin + Budget::kLeastAllowance * 5);
}

TEST_F(BudgetTest, TheLeastLeavesOutWhatTheOthersWouldEvict) {
  others = 50_MiB;
  tree.expects = 10_MiB, tree.moves = 25_MiB, tree.count_of_others = 1;
  budget.resident_limit(0_B);
  const Bytes alone = 105_MiB + 100_MiB + Budget::kMargin + Budget::kLeastAllowance;
  EXPECT_EQ(budget.least_with(100_MiB), alone + 15_MiB + Budget::kLeastAllowance);
  EXPECT_EQ(budget.note_least(100_MiB), alone + 15_MiB + Budget::kLeastAllowance);
  tree.moves = 50_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.least_with(200_MiB), alone + 100_MiB + Budget::kLeastAllowance) << "it may hold more outside";
}

TEST_F(BudgetTest, TheLeastLeavesOutWhatChildrenInheritedIfAllOfItWouldHaveBeenEvicted) {
  const auto least = [&](Bytes others_hold, Bytes at_once) {
    others = others_hold;
    budget.resident_limit(0_B);
    others = 0_B;  // for the next moment
    return budget.note_least(at_once);
  };
  const Bytes alone = 105_MiB + Budget::kMargin + Budget::kLeastAllowance;
  budget.note_fork(300_MiB);
  budget.note_fork(500_MiB);
  tree.inherits = 90_MiB;
  EXPECT_EQ(least(100_MiB, 100_MiB), alone + 10_MiB + 100_MiB) << "the 300 MiB would not fit";
  EXPECT_EQ(least(0_B, 285_MiB), alone + 285_MiB);
  EXPECT_EQ(least(0_B, 290_MiB), alone + 290_MiB) << "the 300 MiB might fit, but nothing was inherited then";
  EXPECT_EQ(least(100_MiB, 285_MiB), alone + 100_MiB + 285_MiB);
  others = 100_MiB;
  budget.resident_limit(0_B);
  EXPECT_EQ(budget.least_with(300_MiB), alone + 100_MiB + 300_MiB);
}

TEST_F(BudgetTest, ChildrenInheritNoMoreThanOthersHold) {
  budget.note_fork(300_MiB);
  tree.inherits = 300_MiB, tree.expects = 30_MiB, others = 100_MiB;
  budget.resident_limit(0_B);
  others = 0_B;
  EXPECT_EQ(budget.note_least(100_MiB), 105_MiB + 100_MiB + Budget::kMargin + Budget::kLeastAllowance);
}

// An op's scratch is charged when the op begins. Idle pages may serve it, without a question for the limit, and the
// watch may look between the charge and the op's own allocations. The least budget must hold the charge anyway.
TEST_F(BudgetTest, TheLeastHoldsAChargeUntilItIsDischarged) {
  const Bytes more = Budget::kMargin + Budget::kLeastAllowance;
  resident = 110_MiB;
  budget.resident_limit(0_B);
  budget.charge(64_MiB);
  EXPECT_EQ(budget.note_least(100_MiB), 274_MiB + more);
  EXPECT_EQ(budget.note_least(120_MiB), 294_MiB + more) << "charged in an earlier window";
  budget.discharge(64_MiB);
  EXPECT_EQ(budget.note_least(140_MiB), 314_MiB + more) << "charged when the last window began";
  EXPECT_EQ(budget.note_least(200_MiB), 314_MiB + more);
}

// Weights in a mapped file: their pages can be let go, so no reserve stands for them and no least budget holds them.
TEST_F(BudgetTest, PagesOfMappedFilesStandBesideTheReserve) {
  const Bytes before = budget.resident_limit(0_B);
  budget.in_files(0_B, 30_MiB, 0_B, 0_B);
  EXPECT_EQ(budget.resident_limit(0_B), before - 30_MiB) << "room for what an op will read";
  resident = 105_MiB + 20_MiB;  // it has read a part
  EXPECT_EQ(budget.resident_limit(0_B), before - 30_MiB);
  EXPECT_EQ(budget.outside_for_good(), 105_MiB);
  budget.in_files(30_MiB, 0_B, 0_B, 0_B);
  resident = 105_MiB + 30_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 30_MiB) << "once, and beside the reserve";
  EXPECT_EQ(budget.outside(), 135_MiB);
  EXPECT_EQ(budget.outside_for_good(), 105_MiB);
  end_four_steps();
  EXPECT_EQ(budget.expected_outside(), 105_MiB);
  budget.in_files(0_B, 0_B, 0_B, 0_B);
  resident = 105_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - 105_MiB - Budget::kMargin);
  EXPECT_EQ(budget.note_least(50_MiB), std::max(50_MiB + 105_MiB + Budget::kMargin + Budget::kLeastAllowance,
                                                Budget::least(105_MiB, Budget::kWarmUp) + Budget::kLeastAllowance));
}

// An op ends and the next one begins before anybody asks for the limit.
TEST_F(BudgetTest, WhatTheNextOpWillReadIsNotThereYet) {
  resident = 300_MiB;  // the reserve is used up
  const Bytes before = budget.resident_limit(0_B);
  budget.in_files(0_B, 20_MiB, 0_B, 0_B);
  resident = 320_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 20_MiB) << "the first op reads, and writes to it";
  budget.in_files(0_B, 30_MiB, 20_MiB, 0_B);
  EXPECT_EQ(budget.resident_limit(0_B), before - 50_MiB);
  EXPECT_EQ(budget.outside_for_good(), 320_MiB);
}

// A program that fits writes to its weights before anybody looks at files. Then ops are followed and find them.
TEST_F(BudgetTest, PagesOfFilesThatAreFoundLateAreNotReservedTwice) {
  resident = 305_MiB;
  end_four_steps();
  ASSERT_EQ(budget.expected_outside(), 305_MiB);
  const Bytes limit = budget.resident_limit(0_B);
  budget.charge(10_MiB);
  budget.in_files(0_B, 0_B, 120_MiB, 120_MiB);
  EXPECT_EQ(budget.outside_for_good(), 305_MiB) << "before anybody measures";
  budget.in_files(80_MiB, 0_B, 120_MiB, 80_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), limit - 10_MiB);
  budget.discharge(10_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), limit);
  EXPECT_EQ(budget.outside_for_good(), 225_MiB);
  budget.end_step();
  EXPECT_EQ(budget.expected_outside(), 225_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), limit);
}

TEST_F(BudgetTest, WhatIsForeseenStandsBesideFiles) {
  const Bytes before = budget.resident_limit(0_B);
  budget.foresee(105_MiB + Budget::kWarmUp + 50_MiB);
  budget.in_files(0_B, 0_B, 200_MiB, 0_B);
  resident = 305_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 250_MiB);
}

TEST_F(BudgetTest, TheLeastHoldsPagesOfFilesThatOpsWroteTo) {
  budget.in_files(30_MiB, 0_B, 200_MiB, 0_B);
  resident = 105_MiB + 230_MiB;
  budget.resident_limit(0_B);
  const Bytes more = 100_MiB + Budget::kMargin + Budget::kLeastAllowance;
  EXPECT_EQ(budget.note_least(100_MiB), 305_MiB + more);
  budget.charge(20_MiB);
  EXPECT_EQ(budget.note_least(100_MiB), 325_MiB + more);
}

// An optimizer's first step makes all weights of a mapped file the program's own. They are no libraries.
TEST_F(BudgetTest, PagesOfFilesThatOpsWroteToStandBesideTheReserve) {
  const Bytes before = budget.resident_limit(0_B);
  budget.in_files(0_B, 0_B, 200_MiB, 0_B);
  resident = 105_MiB + 200_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 200_MiB) << "the libraries will take the same as before";
  EXPECT_EQ(budget.outside_for_good(), 305_MiB) << "they cannot be let go";
  budget.charge(10_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), before - 210_MiB);
  budget.discharge(10_MiB);
  end_four_steps();
  EXPECT_EQ(budget.expected_outside(), 305_MiB);
  budget.in_files(0_B, 0_B, 0_B, 0_B);
  resident = 105_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - 105_MiB - Budget::kMargin) << "the file was unmapped";
}

TEST_F(BudgetTest, NeverGoesBelowZeroAndSaysWhatIsMissing) {
  resident = 3_GiB;
  EXPECT_EQ(budget.resident_limit(0_B), 0_B);
  EXPECT_EQ(budget.missing(0_B), 2_GiB + Budget::kMargin);
  resident = 105_MiB + 300_MiB;
  EXPECT_EQ(budget.missing(300_MiB), 0_B);
}

TEST_F(BudgetTest, OfZeroBytesIsNone) {
  Budget none(0_B, 105_MiB, Budget::kWarmUp, &read_resident, &tree);
  resident = 100_GiB;
  EXPECT_GT(none.resident_limit(0_B), 1000_GiB);
}

}  // namespace
}  // namespace ullage::store
