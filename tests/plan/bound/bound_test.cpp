// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/bound/bound.h"

#include "seeds.h"
#include "ullage/plan/verify/verifier.h"

#include "plan/cheapest_schedule.h"
#include "plan/small_step.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace ullage::plan {
namespace {

struct Tally {
  int tried = 0, none = 0, equal = 0, costly = 0;
  double bound = 0, best = 0;
};

// Compares bound and cheapest schedule at every budget of a step, from the plain peak down to the first without a
// schedule.
void compare(const Step& step, Ask ask, std::size_t most_states, Tally& tally) {
  for (std::uint64_t budget = step.peak.count; budget > 0; --budget) {
    ask.budget = Bytes{budget};
    const test::CheapestOutcome outcome = test::cheapest_schedule(step, ask, most_states);
    if (std::holds_alternative<test::TooManyStates>(outcome)) return;
    const Result<Seconds> bound = lower_bound(step, ask);
    ++tally.tried;
    if (std::holds_alternative<test::NoSchedule>(outcome)) {
      ++tally.none;
      return;  // no smaller budget has a schedule either
    }
    const auto& best = std::get<test::Cheapest>(outcome);
    const Result<Verified> verified = verify(step, best.schedule, ask.budget);
    ASSERT_TRUE(verified.ok()) << "the search's own schedule: " << verified.error().text();
    EXPECT_NEAR(best.seconds.count,
                verified->recomputes.count + double(verified->written.count) / ask.rates.write +
                    double(verified->read.count) / ask.rates.read,
                1e-9);
    ASSERT_TRUE(bound.ok()) << bound.error().text() << "; but a schedule of " << best.seconds.count << " s fits";
    ASSERT_LE(bound->count, best.seconds.count + 1e-6) << "budget " << budget << " of " << step.peak.count;
    tally.equal += bound->count > best.seconds.count - 1e-6;
    tally.costly += best.seconds.count > 0;
    tally.bound += bound->count;
    tally.best += best.seconds.count;
  }
}

void compare_random(const char* what, const Levers& levers, std::size_t ops, bool state, std::uint64_t all,
                    bool left = false) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= seeds(all); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Ask ask;
    ask.levers = levers;
    ask.rates = {2, 4};  // bytes a second: a copy costs about what a recompute does
    compare(test::random_small_step(seed, ops, state, left), ask, 150'000, tally);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::printf("%s: %d budgets, %d without a schedule, %d at a cost, bound equal in %d; sums %.1f of %.1f s\n", what,
              tally.tried, tally.none, tally.costly, tally.equal, tally.bound, tally.best);
  EXPECT_GT(tally.costly, int(seeds(all)) / 4);
  EXPECT_GT(tally.bound, 0.35 * tally.best);  // a much lower bound would be useless
}

TEST(Bound, NeverPassesTheBestOfAllSchedulesWithRecomputes) {
  compare_random("recomputes alone", {true, false, false, false, false}, 9, false, 30);
}
TEST(Bound, NeverPassesTheBestOfAllSchedulesThatHold) {
  compare_random("recomputes, hold, batch_norm", {true, true, true, false, false}, 8, false, 30);
}
TEST(Bound, NeverPassesTheBestOfAllSchedulesThatSpill) {
  compare_random("spill", {false, false, false, true, false}, 7, false, 25);
  compare_random("recomputes, hold, spill", {true, true, true, true, false}, 5, false, 25);
}
TEST(Bound, NeverPassesTheBestOfAllSchedulesThatSendStateAway) {
  compare_random("state", {false, false, false, false, true}, 6, true, 15);
  compare_random("all levers", {true, true, true, true, true}, 4, true, 15);
}
TEST(Bound, NeverPassesTheBestOfAllSchedulesThatSpillWhatAStepLeaves) {
  compare_random("spill what a step leaves", {false, false, false, true, false}, 5, false, 25, true);
  compare_random("all levers, and what a step leaves", {true, true, true, true, true}, 3, false, 15, true);
}
TEST(Bound, NeverPassesTheBestOfAllSchedulesOfTwelveOps) {
  compare_random("twelve ops", {true, true, true, false, false}, 12, false, 12);
}

// n layers of 10 bytes and a second each. The backward op of the last layer reads it and the layer below, so two must
// be resident. A dropped layer costs one second if the layer below it is kept, so every second layer can be dropped.
TEST(Bound, IsExactOnAChain) {
  const Step step = test::chain_step(8, 10_B);
  ASSERT_EQ(step.peak, 81_B);
  Ask ask;
  ask.levers = {true, true, true, false, false};
  for (const std::uint64_t dropped : {0, 1, 2, 3}) {
    ask.budget = Bytes{81 - 10 * dropped};
    const Result<Seconds> bound = lower_bound(step, ask);
    ASSERT_TRUE(bound.ok()) << bound.error().text();
    EXPECT_NEAR(bound->count, double(dropped), 1e-6) << dropped << " layers too many";
  }
}

TEST(Bound, SaysWhereNothingFits) {
  const Step step = test::chain_step(4, 10_B);
  Ask ask;
  ask.levers = {true, true, true, false, false};
  ask.budget = 20_B;  // too little: an op needs two layers and a byte at once
  const Result<Seconds> bound = lower_bound(step, ask);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().text(), "no plan with these levers fits in 20 bytes");
}

TEST(Bound, IsNothingWhereMemorySuffices) {
  const Step step = test::chain_step(4, 10_B);
  Ask ask;
  ask.budget = step.peak;
  EXPECT_EQ(lower_bound(step, ask).value(), Seconds{});
}

}  // namespace
}  // namespace ullage::plan
