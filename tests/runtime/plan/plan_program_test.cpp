// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/plan/plan_program.h"

#include <gtest/gtest.h>

namespace ullage::runtime {
namespace {

using plan::Action;
using plan::OpIndex;
using plan::ValueIndex;
using What = Action::What;

// Ops 0 to 3 make values 0 to 3, each from the one before.
plan::Sites chain() {
  plan::Sites sites;
  sites.ops.resize(4);
  sites.values = 4;
  for (const OpIndex op : sites.ops.ids()) {
    sites.ops[op].key = op.value;
    const ValueIndex made{op.value};
    if (made > ValueIndex{0}) sites.ops[op].reads = {made.previous()};
    sites.ops[op].makes = {made};
  }
  return sites;
}

Action drop(std::uint64_t at, std::uint64_t value) { return {What::Drop, OpIndex{at}, true, ValueIndex{value}}; }
Action recompute(std::uint64_t at, std::uint64_t op) {
  return {What::Recompute, OpIndex{at}, false, {}, OpIndex{op}, {ValueIndex{op}}};
}

TEST(PlanProgram, GivesTheActionsOfEachSideOfAnOp) {
  plan::Plan plan;
  plan.schedule.actions = {drop(1, 1), recompute(3, 1), drop(3, 1)};
  const PlanProgram program(chain(), plan);
  EXPECT_TRUE(program.before(OpIndex{0}).empty());
  EXPECT_TRUE(program.before(OpIndex{1}).empty());
  ASSERT_EQ(program.after(OpIndex{1}).size(), 1u);
  EXPECT_EQ(program.after(OpIndex{1})[0], drop(1, 1));
  ASSERT_EQ(program.before(OpIndex{3}).size(), 1u);
  EXPECT_EQ(program.before(OpIndex{3})[0], recompute(3, 1));
  EXPECT_EQ(program.after(OpIndex{3}).size(), 1u);
  EXPECT_EQ(program.recomputes(), 1u);
  EXPECT_EQ(program.spills(), 0u);
}

TEST(PlanProgram, TapesWhatIsRunAgainAndNothingElse) {
  plan::Plan plan;
  plan.schedule.actions = {drop(2, 2), recompute(3, 2)};
  const PlanProgram program(chain(), plan);
  for (const std::uint64_t other : {0, 1, 3}) EXPECT_FALSE(program.taped(OpIndex{other}));
  EXPECT_TRUE(program.taped(OpIndex{2}));
  EXPECT_EQ(program.maker(ValueIndex{2}), OpIndex{2});
}

// A run does not look at ops that neither read nor make a storage of the pool. Their actions move to the ops beside.
TEST(PlanProgram, LeavesOutOpsThatTouchNothingOfThePool) {
  plan::Sites sites = chain();
  plan::Sites with_idle;
  with_idle.values = sites.values;
  plan::Sites::Op idle;
  idle.key = 100;
  for (const OpIndex op : sites.ops.ids()) {  // an idle op before each op, and one at the end
    with_idle.ops.push_back(idle);
    with_idle.ops.push_back(sites.ops[op]);
  }
  with_idle.ops.push_back(idle);
  plan::Plan plan;
  plan.schedule.actions = {{What::Spill, OpIndex{0}, false, ValueIndex{0}},
                           {What::Drop, OpIndex{4}, false, ValueIndex{1}},
                           {What::Recompute, OpIndex{7}, false, {}, OpIndex{3}, {ValueIndex{1}}},
                           {What::Drop, OpIndex{8}, true, ValueIndex{1}}};
  const PlanProgram program(with_idle, plan);
  ASSERT_EQ(program.end(), OpIndex{4});
  EXPECT_EQ(program.op(OpIndex{2}), sites.ops[OpIndex{2}]);
  EXPECT_EQ(program.last_key(), 3u);
  ASSERT_EQ(program.before(OpIndex{0}).size(), 1u);
  EXPECT_EQ(program.before(OpIndex{0})[0].what, What::Spill);
  ASSERT_EQ(program.after(OpIndex{1}).size(), 1u);
  EXPECT_EQ(program.after(OpIndex{1})[0], drop(1, 1));
  ASSERT_EQ(program.before(OpIndex{3}).size(), 1u);
  EXPECT_EQ(program.before(OpIndex{3})[0], recompute(3, 1));
  ASSERT_EQ(program.after(OpIndex{3}).size(), 1u);
  EXPECT_EQ(program.after(OpIndex{3})[0], drop(3, 1));
  EXPECT_TRUE(program.taped(OpIndex{1}));
}

// The last drop of a value is not followed by a recompute, so the run spills the bytes instead.
TEST(PlanProgram, KnowsADropThatIsTheLast) {
  plan::Plan plan;
  plan.schedule.actions = {drop(1, 1), recompute(3, 1), drop(3, 1)};
  const PlanProgram program(chain(), plan);
  EXPECT_FALSE(program.is_last(program.after(OpIndex{1})[0]));
  EXPECT_TRUE(program.is_last(program.after(OpIndex{3})[0]));
}

TEST(PlanProgram, LeavesOutOpsOnSmallTensorsThatItNeedsNot) {
  plan::Sites sites = chain();
  sites.ops[OpIndex{1}].small = sites.ops[OpIndex{3}].small = true;
  plan::Plan plan;
  plan.schedule.actions = {drop(2, 0)};
  const PlanProgram program(sites, plan);
  ASSERT_EQ(program.end(), OpIndex{2});
  EXPECT_EQ(program.op(OpIndex{1}), sites.ops[OpIndex{2}]);
  EXPECT_EQ(program.last_key(), 2u);
  EXPECT_TRUE(program.is_loose(ValueIndex{1}));
  EXPECT_FALSE(program.is_loose(ValueIndex{2}));
  plan.schedule.actions = {drop(3, 0)};  // op 3 stays: something happens at it
  const PlanProgram at_op(sites, plan);
  ASSERT_EQ(at_op.end(), OpIndex{3});
  EXPECT_EQ(at_op.after(OpIndex{2}).size(), 1u);
  EXPECT_EQ(at_op.last_key(), 2u);
  plan.schedule.actions = {drop(2, 2), recompute(2, 2)};  // op 1 stays: op 2 reads its value 1 again
  const PlanProgram again(sites, plan);
  ASSERT_EQ(again.end(), OpIndex{3});
  EXPECT_EQ(again.op(OpIndex{1}), sites.ops[OpIndex{1}]);
  EXPECT_FALSE(again.is_loose(ValueIndex{1}));
}

// A run goes by keys and by which storages ops read. Of two such ops on weights, it would take the first for the
// second.
TEST(PlanProgram, KeepsSmallOpsThatARunWouldTakeForTheNext) {
  plan::Sites sites;
  sites.values = 7;
  const auto add = [&](std::uint64_t key, std::uint64_t read, std::uint64_t made) {
    plan::Sites::Op& op = sites.ops.emplace_back();
    op.key = key, op.reads = {ValueIndex{read}}, op.makes = {ValueIndex{made}}, op.small = key == 7;
  };
  add(7, 0, 1);  // of a weight: could be taken for the next
  add(7, 2, 3);
  add(8, 3, 4);  // runs again, so value 3 is needed
  add(7, 5, 6);
  plan::Plan plan;
  plan.schedule.actions = {drop(2, 4), recompute(3, 2)};
  const PlanProgram program(sites, plan);
  ASSERT_EQ(program.end(), OpIndex{4});  // the last one stays because something happens there
  sites.ops[OpIndex{0}].key = 9;         // has another key
  EXPECT_EQ(PlanProgram(sites, plan).end(), OpIndex{3});
}

// A run knows where the value lies that an op of the plan makes, so other inputs tell the ops apart.
TEST(PlanProgram, LeavesOutSmallOpsThatTheirInputsTellApart) {
  plan::Sites sites = chain();
  sites.ops[OpIndex{1}].small = sites.ops[OpIndex{2}].small = true;
  sites.ops[OpIndex{1}].key = sites.ops[OpIndex{2}].key;
  plan::Plan plan;
  plan.schedule.actions = {drop(3, 3), recompute(3, 3)};  // value 2 is needed, whose maker reads a loose value
  EXPECT_EQ(PlanProgram(sites, plan).end(), OpIndex{4});
  sites.ops[OpIndex{2}].reads = {ValueIndex{0}};
  EXPECT_EQ(PlanProgram(sites, plan).end(), OpIndex{4});  // both read the same
  sites.ops[OpIndex{1}].reads = {ValueIndex{3}};
  EXPECT_EQ(PlanProgram(sites, plan).end(), OpIndex{3});
}

TEST(PlanProgram, DoesWithoutWhatABuildOfTorchDoesNotHave) {
  plan::Sites sites = chain();
  sites.ops[OpIndex{3}].unread = {0};
  plan::Plan plan;
  plan.schedule.actions = {{What::BatchNorm, OpIndex{3}, false, {}, OpIndex{1}, {ValueIndex{1}}}};
  PlanProgram program(sites, plan);
  program.run_batch_norms_again();
  program.read_everything();
  EXPECT_EQ(program.before(OpIndex{3})[0].what, What::Recompute);
  EXPECT_TRUE(program.op(OpIndex{3}).unread.empty());
}

TEST(PlanProgram, IsNotReadFromWhatIsNoPlan) {
  EXPECT_EQ(read_program("/nowhere/plan.json", "2.13.0", "cpu").error().kind, Error::Kind::NotFound);
  EXPECT_EQ(read_program("/proc/self/maps", "2.13.0", "cpu").error().kind, Error::Kind::BadFile);
}

}  // namespace
}  // namespace ullage::runtime
