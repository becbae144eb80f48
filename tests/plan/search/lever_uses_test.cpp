// SPDX-License-Identifier: Apache-2.0
// The uses of levers that are reported for a schedule add up to its cost.
#include "ullage/plan/search/lever_uses.h"

#include "plan/random_schedule.h"
#include "plan/random_step.h"
#include "plan/sample_plan.h"
#include "seeds.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ullage::plan {
namespace {

constexpr Rates kRates{.write = 1e9, .read = 2e9, .each = Seconds{3e-4}};

double cost(const Step& step, const Schedule& schedule, const Rates& rates) {
  const Result<Verified> verified = verify(step, schedule, Bytes{UINT64_MAX});
  if (!verified) return -1;
  return verified->recomputes.count + static_cast<double>(verified->written.count) / rates.write +
         static_cast<double>(verified->read.count) / rates.read +
         rates.each.count * static_cast<double>(verified->kept + verified->spills + verified->restores);
}

double sum(const std::vector<LeverUse>& uses) {
  double seconds = 0;
  for (const LeverUse& use : uses) seconds += use.seconds.count;
  return seconds;
}

TEST(LeverUses, AddUpToWhatAnyScheduleCosts) {
  std::set<std::string> levers;
  std::size_t made = 0;
  for (std::uint64_t seed = 0; seed < seeds(200); ++seed) {
    const Step step = test::random_step(seed, 12 + seed % 100);
    const auto schedule = test::random_schedule(step, seed);
    if (!schedule) continue;
    ++made;
    const std::vector<LeverUse> uses = lever_uses(step, *schedule, kRates);
    EXPECT_NEAR(sum(uses), cost(step, *schedule, kRates), 1e-9) << "seed " << seed;
    for (const LeverUse& use : uses) levers.insert(use.lever);
  }
  EXPECT_GT(made + seeds(10), seeds(200));
  EXPECT_EQ(levers, (std::set<std::string>{"batch-norm", "hold", "recompute", "spill", "state"}));
}

TEST(LeverUses, OfAPlanAddUpToItsOverhead) {
  std::size_t planned = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Step step = test::random_step(seed, 30);
    Ask ask;
    ask.budget = step.peak - step.peak / 10;
    ask.rates = kRates, ask.effort = 10'000;
    const Plan plan = make_plan(step, ask);
    if (plan.outcome != Plan::Outcome::Planned) continue;
    ++planned;
    EXPECT_NEAR(sum(plan.levers), plan.overhead.count, 1e-9) << "seed " << seed;
  }
  EXPECT_GT(planned, 2u);
}

// The weight is updated in place, spilled and read back twice. Unchanged bytes are written only once.
TEST(LeverUses, ChargeACopyWhereBytesAreWritten) {
  using What = Action::What;
  const Step step = sample_step();
  Schedule schedule;
  schedule.actions = {{What::Spill, {0}, false, {1}},
                      {What::Restore, {0}, true, {1}},
                      {What::Spill, {1}, false, {1}},
                      {What::Restore, {4}, false, {1}}};
  const std::vector<LeverUse> uses = lever_uses(step, schedule, kRates);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].lever, "state");
  EXPECT_EQ(uses[0].site, "momentum");
  EXPECT_EQ(uses[0].bytes, 16_MiB);
  const auto bytes = static_cast<double>((16_MiB).count);
  EXPECT_NEAR(uses[0].seconds.count, bytes / 1e9 + 2 * bytes / 2e9 + 4 * 3e-4, 1e-12);
}

TEST(LeverUses, ARecomputesBytesAreThoseThatItBringsBack) {
  using What = Action::What;
  Schedule schedule;
  schedule.actions = {{What::Recompute, {3}, false, {}, {1}, {{4}}}, {What::Recompute, {3}, false, {}, {2}, {{7}}}};
  const std::vector<LeverUse> uses = lever_uses(sample_step(), schedule, kRates);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].site, "aten::native_batch_norm net.1");
  EXPECT_EQ(uses[0].bytes, 64_MiB) << "the statistics, 512 bytes, are not kept";
  EXPECT_NEAR(uses[0].seconds.count, 0.06 + 3e-4, 1e-12);
}

}  // namespace
}  // namespace ullage::plan
