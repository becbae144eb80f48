// SPDX-License-Identifier: Apache-2.0
#include "baselines.h"

#include "seeds.h"
#include "ullage/plan/bound/bound.h"
#include "ullage/plan/search/planner.h"
#include "ullage/plan/verify/verifier.h"

#include "plan/random_step.h"
#include "plan/small_step.h"
#include "plan/step_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ullage::plan {
namespace {

const Baseline& named(const std::vector<Baseline>& all, const std::string& name) {
  return *std::find_if(all.begin(), all.end(), [&](const Baseline& one) { return one.name == name; });
}

// The last `cheap` layers are pointwise ops, the others convolutions.
Step chain(std::size_t layers, std::size_t cheap) {
  Step step = test::chain_step(layers, 10_B);
  for (const OpIndex op : step.ops.ids()) {
    step.ops[op].name = op.value < layers - cheap ? "aten::convolution" : "aten::relu";
    step.ops[op].phase = op.value < layers ? trace::Phase::Forward : trace::Phase::Backward;
  }
  return step;
}

Ask within(Bytes budget) {
  Ask ask;
  ask.budget = budget;
  ask.levers.spill = ask.levers.state = false;
  ask.rates.each = {};
  return ask;
}

void expect_sound(const Step& step, const Ask& ask, const std::vector<Baseline>& all) {
  const Result<Seconds> bound = lower_bound(step, ask);
  for (const Baseline& one : all) {
    SCOPED_TRACE(one.name);
    if (!one.schedule) continue;
    const Result<Verified> verified = verify(step, *one.schedule, ask.budget);
    ASSERT_TRUE(verified.ok()) << verified.error().text();
    EXPECT_EQ(verified->peak, one.peak);
    EXPECT_NEAR(verified->recomputes.count, one.overhead.count, 1e-9);
    ASSERT_TRUE(bound.ok());
    EXPECT_GE(one.overhead.count, bound->count - 1e-9);
  }
}

TEST(Baselines, CostNothingWhereMemorySuffices) {
  const Step step = chain(6, 0);
  const std::vector<Baseline> all = baselines(step, within(step.peak));
  ASSERT_EQ(all.size(), 5u);
  for (const char* name : {"segments", "dtr", "knapsack"}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(named(all, name).schedule.has_value());
    EXPECT_EQ(named(all, name).overhead, Seconds{});
  }
  expect_sound(step, within(step.peak), all);
}

TEST(Baselines, DropOneLayerWhereOneIsTooMuch) {
  const Step step = chain(6, 0);  // peak 61: six layers and the first input
  ASSERT_EQ(step.peak, 61_B);
  const std::vector<Baseline> all = baselines(step, within(51_B));
  EXPECT_EQ(named(all, "dtr").overhead, Seconds{1});
  EXPECT_EQ(named(all, "knapsack").overhead, Seconds{1});
  expect_sound(step, within(51_B), all);
}

TEST(Baselines, DropCheapOpsKeepsWhatIsHeavy) {
  const Step step = chain(6, 3);  // two cheap layers are dropped; the last is needed at once
  const std::vector<Baseline> all = baselines(step, within(55_B));
  ASSERT_TRUE(named(all, "drop cheap ops").schedule.has_value());
  for (const Action& action : named(all, "drop cheap ops").schedule->actions) {
    if (action.what != Action::What::Recompute) continue;
    EXPECT_EQ(step.ops[action.op].name, "aten::relu");
  }
  EXPECT_FALSE(named(all, "drop cheap ops").schedule->actions.empty());
  expect_sound(step, within(55_B), all);
}

TEST(Baselines, SayWhichDoNotFit) {
  const Step step = chain(6, 0);
  const std::vector<Baseline> all = baselines(step, within(15_B));  // less than the two values of one backward op
  for (const Baseline& one : all) EXPECT_FALSE(one.schedule.has_value()) << one.name;
}

TEST(Baselines, AreSoundOnRandomSteps) {
  std::size_t fitting = 0;
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Step step = test::random_small_step(seed, 12, false);
    for (const OpIndex op : IdRange<OpIndex>{OpIndex{0}, OpIndex{6}}) step.ops[op].phase = trace::Phase::Forward;
    const Ask ask = within(step.peak - 1_B);
    const std::vector<Baseline> all = baselines(step, ask);
    expect_sound(step, ask, all);
    fitting +=
        std::size_t(std::count_if(all.begin(), all.end(), [](const Baseline& b) { return b.schedule.has_value(); }));
  }
  EXPECT_GT(fitting, seeds(20));
}

// Residual blocks (convolution, norm, relu, convolution, sum with the block's input), forward and backward. Later
// blocks take longer.
Step residual_step(std::size_t blocks) {
  using test::OpSpec;
  test::StepWriter writer;
  const StorageIndex weight = writer.from_before(1_MiB, "weight");
  const StorageIndex first = writer.op1({.name = "aten::clone", .reads = {weight}, .makes = {4_MiB}});
  std::vector<StorageIndex> passed{first}, inner, normed;
  for (std::size_t i = 0; i < blocks; ++i) {
    const Seconds heavy{0.01 + 0.002 * double(i)};
    const StorageIndex in = passed.back();
    inner.push_back(writer.op1({.name = "aten::convolution", .reads = {in, weight}, .makes = {8_MiB}, .took = heavy}));
    normed.push_back(writer.op1({.name = "aten::layer_norm", .reads = {inner[i]}, .makes = {8_MiB}}));
    const OpSpec relu{.name = "aten::relu_", .writes = {normed[i]}, .took = Seconds{2e-4}};
    writer.op(relu);
    const StorageIndex out =
        writer.op1({.name = "aten::convolution", .reads = {normed[i], weight}, .makes = {4_MiB}, .took = heavy});
    passed.push_back(writer.op1({.name = "aten::add", .reads = {out, in}, .makes = {4_MiB}}));
    writer.free(out);
  }
  for (std::size_t i = blocks; i-- > 0;) {
    for (const StorageIndex read : {normed[i], inner[i], passed[i]}) {
      writer.op({.name = "aten::backward", .reads = {read}, .scratch = 8_MiB, .phase = trace::Phase::Backward});
    }
    for (const StorageIndex gone : {normed[i], inner[i], passed[i + 1]}) writer.free(gone);
  }
  writer.free(first);
  return writer.step();
}

// The search starts from the baselines, so even the smallest effort must be as cheap as each of them.
std::size_t expect_a_plan_as_cheap(const Step& step, Ask ask) {
  ask.effort = 1;
  const std::vector<Baseline> all = baselines(step, ask);
  const Plan plan = make_plan(step, ask);
  std::size_t fitting = 0;
  for (const Baseline& one : all) {
    if (!one.schedule) continue;
    ++fitting;
    EXPECT_NE(plan.outcome, Plan::Outcome::Infeasible) << one.name;
    EXPECT_LE(plan.overhead.count, one.overhead.count + 1e-12) << one.name;
  }
  return fitting;
}

TEST(Baselines, AreNeverCheaperThanAPlan) {
  std::size_t fitting = 0;
  for (const bool copies : {false, true}) {
    for (std::uint64_t seed = 1; seed <= seeds(25); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const Step step = test::random_step(seed, 40 + seed % 5 * 40);
      Ask ask = within(step.peak - (step.peak - step.level) / (2 + seed % 7));
      ask.levers.spill = ask.levers.state = copies;
      ask.rates.each = Seconds{1e-4};
      fitting += expect_a_plan_as_cheap(step, ask);
    }
    for (const std::size_t blocks : {4, 12}) {
      const Step step = residual_step(blocks);
      for (const std::uint64_t percent : {90, 75, 55, 40, 25}) {
        SCOPED_TRACE(std::to_string(blocks) + " blocks, " + std::to_string(percent) + " %");
        Ask ask = within(step.peak * percent / 100);
        ask.levers.spill = ask.levers.state = copies;
        fitting += expect_a_plan_as_cheap(step, ask);
      }
    }
  }
  EXPECT_GT(fitting, seeds(80));
}

}  // namespace
}  // namespace ullage::plan
