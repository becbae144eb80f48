// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/verify/verifier.h"

#include "plan/verifier_fixture.h"
#include "ullage/base/check.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ullage::plan {
namespace {

using test::kBefore;
using test::kNoBudget;
using test::StepWriter;
using What = Action::What;
using Verifier = test::VerifierFixture;

// --- figures

TEST_F(Verifier, CountsPlainExecution) {
  const Verified plain = passed();
  const Bytes stats{512};
  EXPECT_EQ(step.level, kBefore);
  const Table<OpIndex, Bytes> levels = {
      kBefore + 4_MiB,         kBefore + 5_MiB + stats, kBefore + 5_MiB + stats, kBefore + 7_MiB + stats,
      kBefore + 8_MiB + stats, kBefore + 9_MiB + stats, kBefore + 9_MiB + stats, kBefore,
      kBefore + 1_MiB};
  EXPECT_EQ(plain.levels, levels);
  EXPECT_EQ(plain.peak, kBefore + 9_MiB + stats);
  EXPECT_EQ(plain.peak, step.peak);
  EXPECT_EQ(plain.peak_at, OpIndex{kGrad});
  EXPECT_EQ(plain.recomputed_ops, 0u);
  EXPECT_EQ(plain.written + plain.read, Bytes{});
}

TEST_F(Verifier, CountsADroppedValueAndItsRecompute) {
  after(kNorm, What::Drop, a);
  recompute_before(kGrad, kConv, {a});
  const Verified verified = passed();
  const Bytes stats{512};
  // The recompute's scratch comes on top of z and all that is kept.
  EXPECT_EQ(verified.levels[kSplit], kBefore + 5_MiB + stats);
  EXPECT_EQ(verified.levels[kPool], kBefore + 6_MiB + stats);
  EXPECT_EQ(verified.levels[kGrad], kBefore + 9_MiB + stats);
  EXPECT_EQ(verified.recomputed_ops, 1u);
  EXPECT_EQ(verified.recomputes, Seconds{1e-3});
}

TEST_F(Verifier, CountsAnApplyByItsOwnTimeAndRise) {
  step.ops[kNorm].batch_norm->rise = 2_MiB + 100_B;
  recompute_before(kGrad, kNorm, {y}, What::BatchNorm);
  before(kGrad, What::Drop, y);
  const Verified verified = passed();
  EXPECT_EQ(verified.recomputes, Seconds{1e-4});
  EXPECT_EQ(verified.levels[kGrad], kBefore + 9_MiB + 612_B);
}

TEST_F(Verifier, RecomputesInPlaceInAStorageOfItsOwnAndHandsItOver) {
  after(kSplit, What::Drop, y2);
  recompute_before(kGrad, kNorm, {y});   // 2 MiB of Ullage's, because the program's storage has a later value
  recompute_before(kGrad, kRelu, {y2});  // from here on the same 2 MiB back the program's storage
  const Verified verified = passed();
  EXPECT_EQ(verified.recomputed_ops, 2u);
  EXPECT_EQ(verified.kept, 2u);
  EXPECT_EQ(verified.levels[kPool], kBefore + 6_MiB + 512_B);
  EXPECT_EQ(verified.levels[kGrad], kBefore + 9_MiB + 512_B);
}

TEST_F(Verifier, CountsWhatIsMadeInPlaceAndNotKeptAsGone) {
  recompute_before(kGrad, kNorm, {y});
  recompute_before(kGrad, kRelu, {});
  const Verified verified = passed();
  EXPECT_EQ(verified.levels[kGrad], kBefore + 9_MiB + 1024_B);  // with the statistics that the recompute makes
}

TEST_F(Verifier, CountsWhatIsHeldUntilItIsDropped) {
  after(kPool, What::Hold, p);
  after(kConvGrad, What::Drop, p);
  EXPECT_EQ(passed().levels[kGrad], kBefore + 10_MiB + 512_B);
  EXPECT_EQ(passed().levels[kConvGrad], kBefore + 10_MiB + 512_B);
  EXPECT_EQ(passed().levels[kSgd], kBefore);
}

TEST_F(Verifier, CountsCopiesOnceForEachValue) {
  after(kNorm, What::Spill, a);
  before(kPool, What::Restore, a);
  after(kPool, What::Spill, a);  // unchanged since its restore: no write
  after(kPool, What::Spill, a);  // already spilled: no effect
  before(kGrad, What::ReadAhead, a);
  before(kGrad, What::Restore, a);
  const Verified verified = passed();
  EXPECT_EQ(verified.written, 2_MiB);
  EXPECT_EQ(verified.read, 4_MiB);
  EXPECT_EQ(verified.spills, 2u);
  EXPECT_EQ(verified.restores, 2u);
  EXPECT_EQ(verified.levels[kRelu], kBefore + 3_MiB + 512_B);
}

TEST_F(Verifier, CountsAWriteAheadOnce) {
  after(kNorm, What::WriteAhead, a);
  after(kRelu, What::Spill, a);
  before(kGrad, What::Restore, a);
  EXPECT_EQ(passed().written, 2_MiB);
  EXPECT_EQ(passed().levels[kRelu], kBefore + 5_MiB + 512_B);
  EXPECT_EQ(passed().levels[kSplit], kBefore + 5_MiB + 512_B);
}

TEST_F(Verifier, CountsBytesThatAreReadAheadAsPresent) {
  after(kNorm, What::Spill, a);
  after(kSplit, What::ReadAhead, a);
  before(kGrad, What::Restore, a);
  EXPECT_EQ(passed().levels[kPool], kBefore + 8_MiB + 512_B);
  EXPECT_EQ(passed().read, 2_MiB);
}

TEST_F(Verifier, BeginsTheNextStepAsOneEnds) {
  schedule.away = {weight};
  before(kConv, What::Restore, weight);
  after(kCount, What::Spill, weight2);
  EXPECT_EQ(passed().written, 1_MiB);
  EXPECT_EQ(passed().read, 1_MiB);
  EXPECT_EQ(passed().levels[kCount], kBefore + 1_MiB);
  // If no step changes the weight, it is never written again.
  step.ops[kSgd].makes.clear(), step.ops[kSgd].overwrites = 0, step.ops[kSgd].reads.pop_back();
  step.values[weight].overwritten_by = kNone;
  schedule.actions.back().value = weight;
  EXPECT_EQ(passed().written, Bytes{});
  EXPECT_EQ(passed().read, 1_MiB);
}

TEST_F(Verifier, TakesAnyValueOfAStorageThatIsAway) {
  schedule.away = {weight2};
  before(kConv, What::Restore, weight);
  after(kCount, What::Spill, weight2);
  EXPECT_EQ(passed().read, 1_MiB);
}

TEST_F(Verifier, CountsWholePagesAndSlabs) {
  const Bytes resident = passed().resident;
  EXPECT_GE(resident, step.peak);
  EXPECT_LT(resident, step.peak + 4_MiB);  // a slab of small blocks
  after(kNorm, What::Drop, a);
  recompute_before(kGrad, kConv, {a});
  EXPECT_EQ(passed().resident, resident);
}

// --- what a program or a recompute reads

TEST_F(Verifier, RefusesAnOpThatReadsWhatWasDropped) {
  after(kNorm, What::Drop, a);
  EXPECT_EQ(refusal(), "op 5 (grad): reads value 4 (conv 0), which was dropped at op 1 (norm)");
}

TEST_F(Verifier, RefusesAnOpThatReadsWhatIsSpilled) {
  after(kNorm, What::Spill, a);
  EXPECT_EQ(refusal(), "op 5 (grad): reads value 4 (conv 0), which is spilled");
}

TEST_F(Verifier, RefusesAnOpThatReadsWhatIsOnItsWay) {
  after(kNorm, What::Spill, a);
  before(kGrad, What::ReadAhead, a);
  EXPECT_EQ(refusal(), "op 5 (grad): reads value 4 (conv 0), which is read ahead but not restored");
}

TEST_F(Verifier, LetsAnOpHaveAnAbsentInputThatItDoesNotLookAt) {
  step.ops[kGrad].unread = {2};
  after(kNorm, What::Spill, a);
  EXPECT_EQ(refusal(), "");
}

TEST_F(Verifier, RefusesAnOpThatWritesInPlaceWhereNoBytesAre) {
  step.ops[kRelu].unread = {0};
  after(kNorm, What::Drop, y);
  EXPECT_EQ(refusal(), "op 2 (relu_): reads value 5 (norm 1), which was dropped at op 1 (norm)");
}

TEST_F(Verifier, RefusesARecomputeThatReadsWhatIsNotThere) {
  after(kNorm, What::Drop, a);
  recompute_before(kRelu, kNorm, {});
  EXPECT_EQ(
      refusal(),
      "op 2 (relu_): recompute of op 1 (norm) before it: it reads value 4 (conv 0), which was dropped at op 1 (norm)");
}

TEST_F(Verifier, RefusesARecomputeThatReadsWhatDied) {
  recompute_before(kGrad, kPool, {});
  step.ops[kPool].recompute = Recompute{{p}, Seconds{}, 1_MiB};
  EXPECT_EQ(refusal(),
            "op 5 (grad): recompute of op 4 (pool) before it: it reads value 9 (split 3), "
            "which died with its storage at op 5 (grad)");
}

TEST_F(Verifier, RefusesARecomputeOfAStaleExternalValue) {
  before(kConvGrad, What::Hold, x);
  recompute_after(kSgd, kConv, {});
  after(kSgd, What::Drop, x);
  EXPECT_EQ(refusal(),
            "op 7 (sgd_): recompute of op 0 (conv) after it: it reads value 0 (weight), "
            "which is stale: the program wrote over it at op 7 (sgd_)");
  std::swap(schedule.actions[1], schedule.actions[2]);
  schedule.actions[1].at = schedule.actions[2].at = OpIndex{kSgd};
  schedule.actions[1].after = schedule.actions[2].after = false;
  std::swap(schedule.actions[1], schedule.actions[2]);
  EXPECT_EQ(refusal(), "");  // before op 7 the weight is not stale
}

TEST_F(Verifier, RefusesARecomputeInPlaceUponTheProgramsOwnStorage) {
  recompute_before(kGrad, kRelu, {});
  EXPECT_EQ(
      refusal(),
      "op 5 (grad): recompute of op 2 (relu_) before it: it would write over value 5 (norm 1), which is in no storage "
      "of Ullage's: it is stale: the program wrote over it at op 2 (relu_)");
}

TEST_F(Verifier, RefusesARecomputeInPlaceOfWhatAnotherOneWroteOver) {
  after(kRelu, What::Drop, y2);
  recompute_after(kRelu, kNorm, {y});
  recompute_after(kRelu, kRelu, {y2});
  recompute_after(kRelu, kRelu, {});
  EXPECT_EQ(
      refusal(),
      "op 2 (relu_): recompute of op 2 (relu_) after it: it would write over value 5 (norm 1), which is in no storage "
      "of Ullage's: it was written over by a recompute at op 2 (relu_)");
}

TEST_F(Verifier, RefusesARecomputeInPlaceOfWhatIsSpilledOrWritten) {
  recompute_before(kGrad, kNorm, {y});
  before(kGrad, What::Spill, y);
  recompute_before(kGrad, kRelu, {});
  EXPECT_EQ(refusal(),
            "op 5 (grad): recompute of op 2 (relu_) before it: it would write over value 5 (norm 1), which is "
            "spilled");
  schedule.actions[1].what = What::WriteAhead;
  EXPECT_EQ(refusal(),
            "op 5 (grad): recompute of op 2 (relu_) before it: it would write over value 5 (norm 1), which is "
            "being written ahead");
}

// --- from step to step

TEST_F(Verifier, RefusesWhatCannotBeAway) {
  const auto with = [&](std::vector<ValueIndex> away) {
    schedule.away = std::move(away);
    return refusal();
  };
  EXPECT_EQ(with({ValueIndex{999}}), "before op 0 (conv): away: there is no value 999");
  EXPECT_EQ(with({a}), "before op 0 (conv): away: value 4 (conv 0) does not live from step to step");
  // The next step finds it as the old gradient, which is away when the first step begins.
  EXPECT_EQ(with({gradient}),
            "the end of the step: value 13 (conv_grad 6) is to be away when the step ends, but is there");
  EXPECT_EQ(with({old_gradient}), "before op 0 (conv): away: value 2 (old gradient) does not live from step to step");
  EXPECT_EQ(with({bias}), "before op 0 (conv): away: value 1 (bias) is of a storage that cannot be moved");
  EXPECT_EQ(with({weight, weight2}),
            "before op 0 (conv): away: value 14 (weight) is of a storage that is away already");
}

TEST_F(Verifier, RefusesAStepThatDoesNotEndAsTheNextBegins) {
  schedule.away = {weight};
  before(kConv, What::Restore, weight);
  EXPECT_EQ(refusal(), "the end of the step: value 14 (weight) is to be away when the step ends, but is there");
  schedule.away.clear();
  schedule.actions.clear();
  after(kCount, What::Spill, weight2);
  EXPECT_EQ(refusal(), "the end of the step: value 14 (weight) outlives the step, but is spilled");
}

TEST_F(Verifier, RefusesAnOpThatReadsWhatIsAway) {
  schedule.away = {weight};
  EXPECT_EQ(refusal(), "op 0 (conv): reads value 0 (weight), which is spilled");
}

// --- the list of actions, and the budget

TEST_F(Verifier, RefusesMoreThanTheBudget) {
  EXPECT_EQ(refusal(step.peak), "");
  EXPECT_EQ(refusal(step.peak - 1_B), "op 5 (grad): 16778728 bytes are present, the budget is 16778727");
}

TEST_F(Verifier, RefusesActionsOutOfOrder) {
  after(kNorm, What::Spill, a);
  before(kNorm, What::Spill, x);
  EXPECT_EQ(refusal(), "op 1 (norm): an action out of order: it comes after one at op 1 (norm)");
  schedule.actions[0].at = OpIndex{kGrad};
  EXPECT_EQ(refusal(), "op 1 (norm): an action out of order: it comes after one at op 5 (grad)");
}

TEST_F(Verifier, RefusesWhatTheStepDoesNotHave) {
  before(kNorm, What::Drop, ValueIndex{99});
  EXPECT_EQ(refusal(), "op 1 (norm): action on value 99, which the step does not have");
  schedule.actions.clear();
  recompute_before(kNorm, OpIndex{77}, {});
  EXPECT_EQ(refusal(), "op 1 (norm): recompute of op 77, which the step does not have");
  schedule.actions[0].at = OpIndex{9};
  EXPECT_EQ(refusal(), "op 9: an action at an op that the step does not have");
  schedule.actions[0] = {.what = What::Recompute, .at = kNorm, .value = {}, .op = kConv, .keeps = {ValueIndex{99}}};
  EXPECT_EQ(refusal(),
            "op 1 (norm): recompute of op 0 (conv) before it: it does not make value 99, which is to be kept");
}

TEST_F(Verifier, KnowsAStepThatContradictsItself) {
  Step broken = step;
  broken.gaps.pop_back();
  EXPECT_THROW((void)verify(broken, {}, kNoBudget), ContractError);
  broken = step;
  broken.ops[kGrad].reads[0] = y;  // overwritten before this op
  EXPECT_THROW((void)verify(broken, {}, kNoBudget), ContractError);
  broken = step;
  broken.gaps[gap_before(kGrad)].clear();
  EXPECT_THROW((void)verify(broken, {}, kNoBudget), ContractError);  // p is never freed
}

TEST(VerifierOfNothing, PassesAStepWithoutOps) {
  const Step step = StepWriter().step(3_MiB);
  const auto verified = verify(step, {}, 3_MiB);
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->peak, 3_MiB);
  EXPECT_FALSE(verify(step, {}, 2_MiB).ok());
}

}  // namespace
}  // namespace ullage::plan
