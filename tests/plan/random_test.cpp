// SPDX-License-Identifier: Apache-2.0
#include "plan/content.h"
#include "plan/random_schedule.h"
#include "plan/random_step.h"
#include "seeds.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

namespace ullage::plan {
namespace {

using test::Content;
using test::mutated;
using test::random_schedule;
using test::random_step;
using What = Action::What;

constexpr Bytes kNoRandomBudget{UINT64_MAX};

// Computes the peak of plain execution independently: from births, deaths and rises alone.
Bytes plain_peak(const Step& step) {
  Bytes level = step.level, peak = step.level;
  const auto bytes = [&](StorageIndex storage) { return step.storages[storage].bytes; };
  for (const GapIndex i : step.gaps.ids()) {
    for (const GapEvent& event : step.gaps[i]) {
      level = event.born ? level + bytes(event.storage) : level - bytes(event.storage);
      peak = std::max(peak, level);
    }
    if (!step.ops.has(op_after(i))) break;
    const StepOp& op = step.ops[op_after(i)];
    peak = std::max(peak, level + op.rise);
    for (std::size_t k = op.overwrites; k < op.makes.size(); ++k) level += bytes(step.values[op.makes[k]].storage);
    for (const StorageIndex storage : op.hides) level += bytes(storage);
  }
  return peak;
}

TEST(RandomStep, HasAllThatStepsHave) {
  bool in_place_of_two = false, wide = false, never = false, batch_norm = false, hidden = false, unread = false,
       small = false, stays = false, born = false, freed_late = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Step step = random_step(seed, 100);
    for (const StepOp& op : step.ops) {
      in_place_of_two = in_place_of_two || op.overwrites > 1;
      wide = wide || op.makes.size() > 3;
      never = never || !op.recompute;
      batch_norm = batch_norm || op.batch_norm;
      hidden = hidden || !op.hides.empty();
      unread = unread || !op.unread.empty();
    }
    for (const StepStorage& storage : step.storages) {
      small = small || (!storage.movable && storage.bytes == 65'535_B);
      stays = stays || (storage.from_before && storage.outlives && storage.movable);
      freed_late = freed_late || (storage.from_before && !storage.outlives && !step.gaps[GapIndex{0}].empty());
    }
    for (const GapIndex i : step.gaps.ids()) {
      if (i == GapIndex{0}) continue;
      for (const GapEvent& event : step.gaps[i]) born = born || event.born;
    }
  }
  EXPECT_TRUE(in_place_of_two && wide && never && batch_norm && hidden && unread);
  EXPECT_TRUE(small && stays && born && freed_late);
}

TEST(RandomStep, PlainExecutionHasThePeakOfTheStep) {
  for (std::uint64_t seed = 0; seed < seeds(100); ++seed) {
    const Step step = random_step(seed, 12 + seed * 5);
    EXPECT_EQ(plain_peak(step), step.peak);
    const auto plain = verify(step, {}, step.peak);
    ASSERT_TRUE(plain.ok()) << plain.error().text();
    EXPECT_EQ(plain->peak, step.peak);
    EXPECT_EQ(plain->recomputes, Seconds{});
    EXPECT_FALSE(verify(step, {}, step.peak - 1_B).ok());
    Content content(step);
    content.carry_out({});
    EXPECT_TRUE(content.fine()) << content.why();
    EXPECT_EQ(content.peak(), step.peak);
  }
}

TEST(RandomSchedule, PassesAndItsPeakIsTheOneCounted) {
  std::size_t made = 0;
  std::set<What> done;
  for (std::uint64_t seed = 0; seed < seeds(200); ++seed) {
    const Step step = random_step(seed, 12 + seed % 100);
    const auto schedule = random_schedule(step, seed);
    if (!schedule) continue;
    ++made;
    for (const Action& action : schedule->actions) done.insert(action.what);
    const auto verified = verify(step, *schedule, kNoRandomBudget);
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified.error().text();
    Content content(step);
    content.carry_out(*schedule);
    ASSERT_TRUE(content.fine()) << "seed " << seed << ": " << content.why();
    EXPECT_EQ(content.peak(), verified->peak) << "seed " << seed;
    EXPECT_TRUE(verify(step, *schedule, verified->peak).ok());
    EXPECT_FALSE(verify(step, *schedule, verified->peak - 1_B).ok());
  }
  EXPECT_GT(made + seeds(10), seeds(200));
  EXPECT_EQ(done.size(), 8u) << "a kind of action was never tried";
}

// The verifier refuses a changed schedule exactly if an op reads missing or wrong bytes, or an action is impossible.
TEST(RandomSchedule, ChangedIsRefusedExactlyWhereItsContentsAreWrong) {
  std::size_t fine = 0, wrong = 0, unruly = 0;
  for (std::uint64_t seed = 0; seed < seeds(150); ++seed) {
    const Step step = random_step(seed, 12 + seed % 60);
    const auto schedule = random_schedule(step, seed);
    for (std::uint64_t i = 0; schedule && i < 40; ++i) {
      const Schedule changed = mutated(step, *schedule, seed * 1000 + i);
      Content content(step);
      content.carry_out(changed);
      const auto verified = verify(step, changed, kNoRandomBudget);
      content.fine() ? ++fine : content.wrong() ? ++wrong : ++unruly;
      ASSERT_EQ(verified.ok(), content.fine())
          << "seed " << seed << ", " << i << ": "
          << (verified.ok() ? "passed, but " + content.why() : "refused: " + verified.error().text());
      if (verified.ok()) {
        EXPECT_EQ(content.peak(), verified->peak);
      }
    }
  }
  EXPECT_GT(fine, seeds(300));
  EXPECT_GT(wrong, seeds(1000));
  EXPECT_GT(unruly, seeds(1000));
}

// Checks that the plan is within the levers, and that the figures it states are true.
void look_at(const Step& step, const Ask& ask, const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  const auto verified = verify(step, schedule, ask.budget);
  ASSERT_TRUE(verified.ok()) << verified.error().text();
  EXPECT_EQ(verified->peak, plan.peak);
  EXPECT_LE(plan.peak, ask.budget);
  const double copies =
      double(verified->written.count) / ask.rates.write + double(verified->read.count) / ask.rates.read;
  EXPECT_NEAR(plan.overhead.count, verified->recomputes.count + copies, 1e-9);
  for (const Action& action : schedule.actions) {
    EXPECT_TRUE(ask.levers.recompute || action.what != What::Recompute);
    EXPECT_TRUE(ask.levers.batch_norm || action.what != What::BatchNorm);
    EXPECT_TRUE(ask.levers.hold || action.what != What::Hold);
  }
  EXPECT_TRUE(ask.levers.state || schedule.away.empty());
  Content content(step);
  content.carry_out(schedule);
  EXPECT_TRUE(content.fine()) << content.why();
  EXPECT_EQ(content.peak(), plan.peak);
}

TEST(RandomPlan, IsWhatItSaysOrIsNotThere) {
  std::size_t planned = 0;
  for (std::uint64_t seed = 0; seed < seeds(40); ++seed) {
    const Step step = random_step(seed, 12 + seed * 3);
    Ask ask;
    ask.seed = seed;
    ask.effort = 100'000;
    ask.rates.each = Seconds{};
    if (seed % 4 == 1) ask.levers = {.batch_norm = false, .spill = false, .state = false};
    if (seed % 4 == 2) ask.levers = {.recompute = false, .hold = false};
    ask.budget = step.peak;
    EXPECT_EQ(make_plan(step, ask).outcome, Plan::Outcome::Fits);
    ask.budget = 1_B;
    const Plan none = make_plan(step, ask);
    ASSERT_EQ(none.outcome, Plan::Outcome::Infeasible);
    ASSERT_LE(none.least, step.peak);
    for (const std::uint64_t part : {0, 1, 3, 7}) {
      ask.budget = none.least + (step.peak - none.least) * part / 8;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", budget " + std::to_string(ask.budget.count) + " of " +
                   std::to_string(step.peak.count));
      const Plan plan = make_plan(step, ask);
      planned += plan.outcome == Plan::Outcome::Planned ? 1 : 0;
      if (plan.outcome == Plan::Outcome::Infeasible) {
        EXPECT_GT(plan.least, ask.budget);
      } else if (plan.outcome == Plan::Outcome::Planned) {
        look_at(step, ask, plan);
      }
    }
  }
  EXPECT_GT(planned, seeds(100));
}

}  // namespace
}  // namespace ullage::plan
