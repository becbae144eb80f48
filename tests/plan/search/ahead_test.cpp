// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/ahead.h"

#include "plan/random_step.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ullage::plan {
namespace {

using What = Action::What;

// Returns a schedule's actions without copies ahead and without the times of its spills.
std::vector<Action> core(const Schedule& schedule) {
  std::vector<Action> kept;
  for (Action action : schedule.actions) {
    if (action.what == What::WriteAhead || action.what == What::ReadAhead) continue;
    if (action.what == What::Spill) action.at = {}, action.after = false;
    kept.push_back(action);
  }
  std::sort(kept.begin(), kept.end(), [](const Action& a, const Action& b) {
    return std::tuple(a.what, a.value, a.op, a.at, a.after) < std::tuple(b.what, b.value, b.op, b.at, b.after);
  });
  return kept;
}

std::size_t count(const Schedule& schedule, What what) {
  return static_cast<std::size_t>(std::ranges::count(schedule.actions, what, &Action::what));
}

// Removes the copies ahead from a plan: make_plan() has already called with_copies_ahead().
Schedule without_copies_ahead(const Schedule& schedule) {
  Schedule plain = schedule;
  std::erase_if(plain.actions, [](const Action& a) { return a.what == What::WriteAhead || a.what == What::ReadAhead; });
  return plain;
}

TEST(CopiesAhead, KeepTheScheduleAndItsBudget) {
  std::size_t writes = 0, reads = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Step step = test::random_step(seed, 40);
    Ask ask;
    ask.budget = step.peak * 8 / 10;
    ask.levers.recompute = ask.levers.batch_norm = ask.levers.hold = false;
    ask.effort = 200'000;
    const Plan plan = make_plan(step, ask);
    if (plan.outcome != Plan::Outcome::Planned) continue;
    const Schedule plain = without_copies_ahead(plan.schedule);
    const Schedule ahead = with_copies_ahead(step, plain, ask.budget, ask.rates);
    const Result<Verified> verified = verify(step, ahead, ask.budget);
    ASSERT_TRUE(verified) << verified.error().text();
    EXPECT_LE(verified->peak, ask.budget);
    EXPECT_EQ(core(ahead), core(plain));
    writes += count(ahead, What::WriteAhead);
    reads += count(ahead, What::ReadAhead);
  }
  EXPECT_GT(writes, 0u);
  EXPECT_GT(reads, 0u);
}

TEST(CopiesAhead, LeaveAScheduleAloneThatDoesNotFit) {
  const Step step = test::random_step(3, 30);
  EXPECT_EQ(with_copies_ahead(step, {}, step.peak / 2, {}), Schedule{});
}

}  // namespace
}  // namespace ullage::plan
