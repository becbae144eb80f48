// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/search/planner.h"

#include "plan/random_step.h"
#include "plan/step_writer.h"
#include "seeds.h"
#include "ullage/plan/search/policies.h"
#include "ullage/plan/search/solver.h"
#include "ullage/plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ullage::plan {
namespace {

using test::OpSpec;
using test::StepWriter;
using What = Action::What;

constexpr Levers kNone_{.recompute = false, .batch_norm = false, .hold = false, .spill = false, .state = false};

Ask ask_for(Bytes budget, Levers levers) {
  Ask ask;
  ask.budget = budget;
  ask.levers = levers;
  ask.rates = {.write = 1e9, .read = 1e9, .each = Seconds{}};
  ask.effort = 300'000;
  return ask;
}

bool does(const Plan& plan, What what) {
  return std::any_of(plan.schedule.actions.begin(), plan.schedule.actions.end(),
                     [what](const Action& action) { return action.what == what; });
}

// Checks what every plan promises: it fits, and it costs what it says.
void expect_right(const Step& step, const Ask& ask, const Plan& plan) {
  if (plan.outcome != Plan::Outcome::Planned) return;
  const Result<Verified> verified = verify(step, plan.schedule, ask.budget);
  ASSERT_TRUE(verified.ok()) << verified.error().text();
  EXPECT_EQ(plan.peak, verified->peak);
  EXPECT_LE(plan.peak, ask.budget);
  const double copies = static_cast<double>(verified->written.count) / ask.rates.write +
                        static_cast<double>(verified->read.count) / ask.rates.read;
  EXPECT_NEAR(plan.overhead.count, verified->recomputes.count + copies, 1e-9);
}

// x -> a -> b -> c, then backward over c, b, a. Each is 8 MiB. `seconds`: of the ops that make a, b, c.
struct Chain {
  explicit Chain(std::vector<double> seconds, bool recompute = true) {
    const StorageIndex x = writer.from_before(1_MiB, "x");
    StorageIndex last = x;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      last = writer.op1(
          {.name = "make", .reads = {last}, .makes = {8_MiB}, .took = Seconds{seconds[i]}, .recompute = recompute});
      made.push_back(last);
    }
    for (std::size_t i = seconds.size(); i-- > 0;) {
      writer.op({.name = "back", .reads = {made[i]}, .phase = trace::Phase::Backward});
      writer.free(made[i]);
    }
    step = writer.step();
  }
  StepWriter writer;
  std::vector<StorageIndex> made;
  Step step;
};

TEST(Planner, LeavesAStepAloneThatFits) {
  const Chain chain({1e-3, 1e-3, 1e-3});
  const Plan plan = make_plan(chain.step, ask_for(chain.step.peak, {}));
  EXPECT_EQ(plan.outcome, Plan::Outcome::Fits);
  EXPECT_TRUE(plan.schedule.actions.empty());
  EXPECT_EQ(plan.peak, chain.step.peak);
}

TEST(Planner, RunsTheCheapestOpAgain) {
  const Chain chain({4e-3, 1e-3, 5e-3, 6e-3});
  const Ask ask = ask_for(chain.step.peak - 8_MiB, {.spill = false, .state = false});
  const Plan plan = make_plan(chain.step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(chain.step, ask, plan);
  EXPECT_NEAR(plan.overhead.count, 1e-3, 1e-12);
  ASSERT_EQ(plan.levers.size(), 1u);
  EXPECT_EQ(plan.levers[0].lever, "recompute");
  EXPECT_EQ(plan.levers[0].bytes, 8_MiB);
}

TEST(Planner, SpillsWhatCannotBeRunAgain) {
  const Chain chain({1e-3, 1e-3, 1e-3}, false);
  Levers levers = kNone_;
  levers.recompute = levers.hold = levers.spill = true;
  const Ask ask = ask_for(chain.step.peak - 8_MiB, levers);
  const Plan plan = make_plan(chain.step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(chain.step, ask, plan);
  EXPECT_NEAR(plan.overhead.count, 2 * static_cast<double>((8_MiB).count) / 1e9, 1e-12);
  EXPECT_TRUE(does(plan, What::Spill) && does(plan, What::Restore) && !does(plan, What::Recompute));
}

// The program could still read the storage while it is alive. So it is written, although nothing reads it back.
TEST(Planner, WritesOutWhatTheStepNeedsNoMore) {
  StepWriter writer;
  const StorageIndex x = writer.from_before(1_MiB, "x");
  const StorageIndex held = writer.op1({.name = "make", .reads = {x}, .makes = {16_MiB}});
  writer.op({.name = "use", .reads = {held}});
  const StorageIndex large = writer.op1({.name = "make", .reads = {x}, .makes = {24_MiB}});
  writer.op({.name = "use", .reads = {large}});
  writer.free(large);
  writer.free(held);
  const Step step = writer.step();
  Levers levers = kNone_;
  levers.recompute = levers.hold = true;
  EXPECT_EQ(make_plan(step, ask_for(step.peak - 8_MiB, levers)).outcome, Plan::Outcome::Infeasible);
  levers.spill = true;
  const Ask ask = ask_for(step.peak - 8_MiB, levers);
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_NEAR(plan.overhead.count, static_cast<double>((16_MiB).count) / 1e9, 1e-12);
  EXPECT_TRUE(does(plan, What::Spill) && !does(plan, What::Restore) && !does(plan, What::Drop));
}

TEST(Planner, HoldsWhatMakesRecomputesCheap) {
  // The small result of an expensive op is freed in the forward pass. A large and cheap result is made from it.
  StepWriter writer;
  const StorageIndex x = writer.from_before(1_MiB, "x");
  const StorageIndex small = writer.op1({.name = "dear", .reads = {x}, .makes = {1_MiB}, .took = Seconds{0.1}});
  const StorageIndex large = writer.op1({.name = "cat", .reads = {small}, .makes = {16_MiB}, .took = Seconds{1e-3}});
  writer.free(small);
  const StorageIndex other = writer.op1({.name = "make", .reads = {large}, .makes = {16_MiB}, .took = Seconds{0.2}});
  writer.op({.name = "back", .reads = {other}, .scratch = 8_MiB});
  writer.free(other);
  writer.op({.name = "back", .reads = {large}});
  writer.free(large);
  const Step step = writer.step();
  Levers levers{.spill = false, .state = false};
  const Ask ask = ask_for(step.peak - 6_MiB, levers);
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_NEAR(plan.overhead.count, 1e-3, 1e-12);
  EXPECT_TRUE(does(plan, What::Hold));

  levers.hold = false;
  const Plan without = make_plan(step, ask_for(ask.budget, levers));
  ASSERT_EQ(without.outcome, Plan::Outcome::Planned);
  EXPECT_NEAR(without.overhead.count, 0.101, 1e-12);
}

TEST(Planner, AppliesABatchNorm) {
  Levers levers{.spill = false, .state = false};
  StepWriter with;
  const StorageIndex w = with.from_before(256_B, "weight"), b = with.from_before(256_B, "bias");
  const StorageIndex in = with.op1({.name = "conv", .makes = {8_MiB}, .took = Seconds{0.1}});
  const std::vector<StorageIndex> out = with.op({.name = "norm",
                                                 .reads = {in, w, b},
                                                 .makes = {8_MiB, 256_B, 256_B},
                                                 .took = Seconds{0.01},
                                                 .batch_norm = Seconds{0.002}});
  const StorageIndex next = with.op1({.name = "conv", .reads = {out[0]}, .makes = {1_MiB}, .took = Seconds{0.1}});
  with.op({.name = "back", .reads = {next}, .scratch = 16_MiB});
  with.op({.name = "back", .reads = {out[0]}});
  with.op({.name = "norm_back", .reads = {in, out[1], out[2]}});
  for (const StorageIndex storage : {next, out[0], out[1], out[2], in}) with.free(storage);
  const Step second = with.step();
  const Ask again = ask_for(second.peak - 8_MiB, levers);
  const Plan applied = make_plan(second, again);
  ASSERT_EQ(applied.outcome, Plan::Outcome::Planned);
  expect_right(second, again, applied);
  EXPECT_TRUE(does(applied, What::BatchNorm));
  EXPECT_NEAR(applied.overhead.count, 0.002, 1e-12);
  levers.batch_norm = false;
  const Plan recompute = make_plan(second, ask_for(again.budget, levers));
  ASSERT_EQ(recompute.outcome, Plan::Outcome::Planned);
  EXPECT_NEAR(recompute.overhead.count, 0.01, 1e-12);
}

// Optimizer state is used once a step, so it is away while the middle of the step needs the room.
TEST(Planner, SendsStateAwayFromStepToStep) {
  StepWriter writer;
  const StorageIndex weight = writer.from_before(1_MiB, "weight"), state = writer.from_before(16_MiB, "state");
  const StorageIndex a = writer.op1({.name = "make", .reads = {weight}, .makes = {24_MiB}, .recompute = false});
  const StorageIndex gradient = writer.op1({.name = "back", .reads = {a}, .makes = {1_MiB}, .recompute = false});
  writer.free(a);
  writer.op({.name = "adam_", .reads = {gradient}, .writes = {weight, state}, .recompute = false});
  writer.free(gradient);
  const Step step = writer.step();
  Levers levers = kNone_;
  levers.state = true;
  const Ask ask = ask_for(step.peak - 8_MiB, levers);
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_EQ(plan.schedule.away.size(), 1u);
  EXPECT_NEAR(plan.overhead.count, 2 * static_cast<double>((16_MiB).count) / 1e9, 1e-12);
}

// A step's output stays alive until the next step makes the new one. No op uses it then, so it need not be there.
TEST(Planner, SpillsWhatTheStepBeforeLeft) {
  StepWriter writer;
  const StorageIndex old = writer.from_before(16_MiB, "output of the step before");
  const StorageIndex x = writer.op1({.name = "rand", .makes = {2_MiB}, .recompute = false});
  const StorageIndex big = writer.op1({.name = "large", .reads = {x}, .makes = {8_MiB}, .recompute = false});
  writer.free(old), writer.free(x);
  writer.op1({.name = "output", .reads = {big}, .makes = {16_MiB}, .recompute = false});
  writer.free(big);
  const Step step = writer.step();
  Levers levers = kNone_;
  levers.spill = true;
  const Ask ask = ask_for(24_MiB, levers);  // "output" needs this; "large" would need 26 MiB beside the old output
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_EQ(plan.schedule.away.size(), 1u);
  EXPECT_EQ(plan.least, 24_MiB);
  EXPECT_NEAR(plan.overhead.count, static_cast<double>((16_MiB).count) / 1e9, 1e-12);  // written, never read
}

// What a step leaves is dropped within the step and recomputed, and only its last stay ends with a copy.
TEST(Planner, DropsAndThenSpillsWhatItLeavesToTheNextStep) {
  StepWriter writer;
  const StorageIndex old = writer.from_before(16_MiB, "output of the step before");
  const StorageIndex x = writer.op1({.name = "rand", .makes = {2_MiB}, .recompute = false});
  writer.free(old);
  const StorageIndex y = writer.op1({.name = "output", .reads = {x}, .makes = {16_MiB}, .took = Seconds{1e-5}});
  for (int i = 0; i < 2; ++i) {
    writer.op({.name = "look", .reads = {y}, .recompute = false});
    writer.free(writer.op1({.name = "large", .reads = {x}, .makes = {24_MiB}, .recompute = false}));
  }
  writer.free(x);
  const Step step = writer.step();
  const Ask ask = ask_for(26_MiB, {});
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_EQ(plan.schedule.away.size(), 1u);
  EXPECT_TRUE(does(plan, What::Drop));
  EXPECT_NEAR(plan.overhead.count, 1e-5 + static_cast<double>((16_MiB).count) / 1e9, 1e-12);
}

// A storage that no op of the step uses costs nothing, because it stays away.
TEST(Planner, LeavesAwayWhatNoOpUses) {
  StepWriter writer;
  writer.from_before(32_MiB, "weights of another model");
  const StorageIndex x = writer.op1({.name = "rand", .makes = {8_MiB}, .recompute = false});
  writer.op({.name = "print", .reads = {x}, .recompute = false});
  writer.free(x);
  const Step step = writer.step();
  Levers levers = kNone_;
  levers.state = true;
  const Ask ask = ask_for(8_MiB, levers);
  const Plan plan = make_plan(step, ask);
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  expect_right(step, ask, plan);
  EXPECT_EQ(plan.schedule.away.size(), 1u);
  EXPECT_EQ(plan.overhead.count, 0);
}

TEST(Planner, SaysWhatWouldBeEnough) {
  const Chain chain({1e-3, 1e-3, 1e-3, 1e-3});
  const Plan plan = make_plan(chain.step, ask_for(4_MiB, {}));
  ASSERT_EQ(plan.outcome, Plan::Outcome::Infeasible);
  EXPECT_TRUE(plan.schedule.actions.empty());
  EXPECT_EQ(plan.least, 16_MiB);  // an op that reads and makes 8 MiB; x is away
  EXPECT_EQ(plan.least_set_by, "make make 0 (forward)");
  const Ask ask = ask_for(plan.least, {});
  const Plan least = make_plan(chain.step, ask);
  ASSERT_EQ(least.outcome, Plan::Outcome::Planned);
  expect_right(chain.step, ask, least);
}

TEST(Planner, IsTheSameForASeed) {
  const Step step = test::random_step(7, 120);
  const Ask ask = ask_for(step.peak - step.saved / 4, {});
  const Plan a = make_plan(step, ask), b = make_plan(step, ask);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.overhead, b.overhead);
}

TEST(Planner, TellsOfBetterPlansAndEndsWhenTold) {
  const Step step = test::random_step(3, 200);
  const Ask ask = ask_for(step.peak - (step.peak - step.level) / 4, {});
  std::vector<Seconds> told;
  const Plan plan = make_plan(step, ask, [&](const Plan& better) {
    told.push_back(better.overhead);
    return false;
  });
  ASSERT_EQ(plan.outcome, Plan::Outcome::Planned);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], plan.overhead);
}

TEST(Planner, EndsAtOnceWhenStopped) {
  const Chain chain({4e-3, 1e-3, 5e-3});
  const std::atomic<bool> stop{true};
  Ask ask = ask_for(chain.step.peak - 8_MiB, {});
  ask.effort = UINT64_MAX / 4;
  ask.stop = &stop;
  const Plan plan = make_plan(chain.step, ask);
  EXPECT_NE(plan.outcome, Plan::Outcome::Fits);
}

// A recurrent network's step has thousands of values. The searches that take out one after the other must not simulate
// the step once for each.
TEST(Search, EndsForAStepOfManyOps) {
  constexpr std::size_t kValues = 400;
  const Chain chain(std::vector<double>(kValues, 1e-3));
  const Problem problem = problem_of(chain.step, {.spill = false, .state = false}, {}, 8_MiB);
  Timeline timeline(problem);
  const std::uint64_t of_one = (timeline.run(plain_choice(problem), 0), timeline.effort());
  const std::uint64_t most = 30 * of_one;

  SearchEnd end(timeline, most, nullptr);
  greedy(problem, timeline, plain_choice(problem), 0, end);
  EXPECT_LE(timeline.effort(), of_one + most + 3 * of_one);

  std::uint64_t before = timeline.effort();
  const std::int64_t plain = chain.step.peak.count;
  std::int64_t of_knapsack = plain, of_dtr = plain;
  try_policies(problem, timeline, 0, end, [&](std::size_t policy, const Choice&, const Outcome& outcome) {
    if (std::string(kPolicies[policy]) == "knapsack") of_knapsack = std::min(of_knapsack, outcome.peak);
    if (std::string(kPolicies[policy]) == "dtr") of_dtr = std::min(of_dtr, outcome.peak);
  });
  EXPECT_LE(timeline.effort() - before, kPolicies.size() * (most + 3 * of_one));
  // They got far, because they took out many values at a time.
  EXPECT_LT(of_knapsack, plain * 3 / 4);
  EXPECT_LT(of_dtr, plain / 2);

  const std::atomic<bool> stop{true};
  before = timeline.effort();
  greedy(problem, timeline, plain_choice(problem), 0, SearchEnd(timeline, most, &stop));
  EXPECT_LE(timeline.effort() - before, of_one);
}

TEST(Search, TakesOutOneAtATimeWhereThereIsTime) {
  const Chain chain({1e-3, 1e-3});
  const Problem problem = problem_of(chain.step, {}, {}, 8_MiB);
  const Timeline timeline(problem);
  const SearchEnd end(timeline, 1'000'000, nullptr);
  EXPECT_EQ(end.at_once(300, 1'500), 1u);
  EXPECT_EQ(end.at_once(1'000, 1'000), 2u);
  EXPECT_EQ(end.at_once(20'000, 100'000), 4'000u);
  EXPECT_EQ(end.at_once(0, 0), 1u);
}

TEST(Planner, MoreBytesNeverCostMore) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Step step = test::random_step(seed, 100);
    Ask ask = ask_for(Bytes{}, {});
    ask.effort = 100'000;
    const std::vector<Plan> plans = plan_curve(step, ask, 6);
    ASSERT_EQ(plans.size(), 7u) << "also where there is no plan";
    EXPECT_EQ(plans.back().outcome, Plan::Outcome::Fits);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      ask.budget = plans[i].budget;
      expect_right(step, ask, plans[i]);
      if (i == 0) continue;
      EXPECT_LT(plans[i - 1].budget, plans[i].budget);
      if (plans[i - 1].outcome == Plan::Outcome::Infeasible) continue;
      EXPECT_NE(plans[i].outcome, Plan::Outcome::Infeasible);
      EXPECT_LE(plans[i].overhead, plans[i - 1].overhead);
    }
  }
}

// If a plan exists for some bytes, it is also one for more bytes. A search that starts from recomputing alone misses
// it: steps that read much state need the rest of the state moved out.
TEST(Planner, FitsInMoreBytesToo) {
  std::size_t planned = 0, missed = 0;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    const Step step = test::random_step(seed, 120);
    Ask ask = ask_for(Bytes{1}, {});
    ask.effort = 20'000;
    const Bytes floor = make_plan(step, ask).least;
    for (std::uint64_t part = 1; part <= 8; ++part) {
      ask.budget = floor + (step.peak - floor) * part / 9;
      const Plan plan = make_plan(step, ask);
      ++(plan.outcome == Plan::Outcome::Infeasible ? missed : planned);
    }
  }
  EXPECT_EQ(missed, 0u);
  EXPECT_GT(planned, seeds(200));
}

TEST(Planner, MoreLeversNeverCostMore) {
  std::size_t planned = 0;
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    const Step step = test::random_step(seed, 120);
    Ask ask = ask_for(step.peak - (step.peak - step.level) / 4, {.spill = false, .state = false});
    ask.effort = 60'000;
    const Plan fewer = make_plan(step, ask);
    ask.levers.spill = ask.levers.state = true;
    const Plan more = make_plan(step, ask);
    expect_right(step, ask, more);
    if (fewer.outcome != Plan::Outcome::Planned) continue;
    ASSERT_EQ(more.outcome, Plan::Outcome::Planned) << seed;
    EXPECT_LE(more.overhead, fewer.overhead) << seed;
    ++planned;
  }
  EXPECT_GT(6 * planned, seeds(20)) << "of the steps a plan was needed for too few";
}

// The search never counts fewer bytes than the verifier, because then its result would be discarded.
TEST(Planner, FindsOnlyWhatTheVerifierPasses) {
  std::size_t found = 0;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    const Step step = test::random_step(seed, 40 + seed % 5 * 40);
    Ask ask = ask_for(step.peak - (step.peak - step.level) / (2 + seed % 7), {});
    ask.levers.spill = ask.levers.state = seed % 2 == 0;
    ask.rates.each = Seconds{1e-4};
    ask.effort = 20'000;
    Solver solver(step, ask, ask.budget);
    if (solver.floor().bytes > ask.budget) continue;
    const std::optional<Found> best = solver.solve(ask.budget, ask.effort, {});
    if (!best) continue;
    ++found;
    const Result<Plan> plan = solver.plan_of(*best, ask.budget);
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.error().text();
    EXPECT_LE(plan->overhead.count, best->outcome.seconds + 1e-9) << seed;
  }
  EXPECT_GT(found, seeds(15));
}

// With all levers together and each alone, a plan's bytes and seconds are exactly what the verifier computes.
TEST(Planner, IsRightOnRandomSteps) {
  std::size_t planned = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    const Step step = test::random_step(seed, 40 + seed % 5 * 40);
    for (int which = 0; which < 5; ++which) {
      Levers levers{.recompute = which != 2 && which != 3,
                    .batch_norm = which == 0 || which == 4,
                    .hold = which != 1,
                    .spill = which == 0 || which == 2,
                    .state = which == 0 || which == 3};
      Ask ask = ask_for(step.peak - (step.peak - step.level) / (2 + seed % 4), levers);
      ask.effort = 60'000;
      const Plan plan = make_plan(step, ask);
      EXPECT_NE(plan.least_set_by, "") << seed;
      EXPECT_EQ(plan.least_set_by.find("verifier"), std::string::npos) << seed << ": " << plan.least_set_by;
      expect_right(step, ask, plan);
      planned += plan.outcome == Plan::Outcome::Planned ? 1 : 0;
    }
  }
  EXPECT_GT(planned, seeds(60));
}

}  // namespace
}  // namespace ullage::plan
