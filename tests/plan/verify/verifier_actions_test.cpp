// SPDX-License-Identifier: Apache-2.0
#include "plan/verifier_fixture.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ullage::plan {
namespace {

using test::kBefore;
using test::kNoBudget;
using What = Action::What;
using Verifier = test::VerifierFixture;

// Which actions the verifier refuses, and which it lets pass.

// --- what may be run again, and kept

TEST_F(Verifier, RefusesARecomputeOfAnOpWithoutOne) {
  recompute_after(kPool, kPool, {});
  EXPECT_EQ(refusal(), "op 4 (pool): recompute of op 4 (pool) after it: it cannot be run again");
}

TEST_F(Verifier, RefusesAnApplyOfAnOpWithoutOne) {
  recompute_after(kNorm, kConv, {}, What::BatchNorm);
  EXPECT_EQ(refusal(), "op 1 (norm): batch-norm of op 0 (conv) after it: it has no batch-norm");
}

TEST_F(Verifier, RefusesAnOpThatDidNotRunYet) {
  recompute_before(kConv, kNorm, {});
  EXPECT_EQ(refusal(), "op 0 (conv): recompute of op 1 (norm) before it: it has not run yet");
  schedule.actions[0].op = OpIndex{kConv};
  EXPECT_EQ(refusal(), "op 0 (conv): recompute of op 0 (conv) before it: it has not run yet");
  schedule.actions[0].after = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(Verifier, RefusesToKeepWhatIsThere) {
  recompute_after(kNorm, kConv, {a});
  EXPECT_EQ(refusal(),
            "op 1 (norm): recompute of op 0 (conv) after it: it keeps value 4 (conv 0), which is there already");
}

TEST_F(Verifier, RefusesToKeepWhatIsSpilled) {
  after(kNorm, What::Spill, a);
  recompute_before(kGrad, kConv, {a});
  EXPECT_EQ(refusal(),
            "op 5 (grad): recompute of op 0 (conv) before it: it keeps value 4 (conv 0), which is spilled already");
  after(kNorm, What::Drop, a);
  std::swap(schedule.actions[1], schedule.actions[2]);
  EXPECT_EQ(refusal(), "");  // now the spilled copy is dropped before the recompute
}

TEST_F(Verifier, RefusesToKeepOneValueTwice) {
  after(kNorm, What::Drop, a);
  recompute_before(kGrad, kConv, {a, a});
  EXPECT_EQ(refusal(), "op 5 (grad): recompute of op 0 (conv) before it: it keeps value 4 (conv 0) twice");
}

TEST_F(Verifier, RefusesToKeepWhatTheOpDoesNotMake) {
  recompute_after(kNorm, kConv, {y});
  EXPECT_EQ(refusal(),
            "op 1 (norm): recompute of op 0 (conv) after it: it does not make value 5 (norm 1), which is to be kept");
  schedule.actions[0] = {
      .what = What::BatchNorm, .at = OpIndex{kNorm}, .after = true, .value = {}, .op = OpIndex{kNorm}, .keeps = {mean}};
  EXPECT_EQ(refusal(),
            "op 1 (norm): batch-norm of op 1 (norm) after it: it does not make value 6 (norm 1), which is to be kept");
}

// --- drops

TEST_F(Verifier, RefusesADropOfWhatIsNotThere) {
  after(kPool, What::Drop, y);
  EXPECT_EQ(refusal(),
            "op 4 (pool): drop of value 5 (norm 1) after it: it is not there: "
            "it is stale: the program wrote over it at op 2 (relu_)");
  schedule.actions[0].value = d;
  EXPECT_EQ(refusal(), "op 4 (pool): drop of value 12 (grad 5) after it: it is not there: it is not made yet");
}

TEST_F(Verifier, RefusesADropOfAStorageThatCannotBeMoved) {
  after(kNorm, What::Drop, mean);
  EXPECT_EQ(refusal(), "op 1 (norm): drop of value 6 (norm 1) after it: its storage lives and cannot be moved");
}

TEST_F(Verifier, RefusesADropOfWhatOutlivesTheStep) {
  after(kCount, What::Drop, gradient);
  EXPECT_EQ(refusal(),
            "the end of the step: value 13 (conv_grad 6) outlives the step, "
            "but was dropped at op 8 (count)");
}

// The program could still read the storage, which is freed only in the gap after the op.
TEST_F(Verifier, RefusesADropForGoodWhileTheStorageLives) {
  before(kConv, What::Drop, old_gradient);
  EXPECT_EQ(refusal(),
            "before op 7 (sgd_): value 2 (old gradient) is dropped at op 0 (conv) while its storage lives, and "
            "not made again: spill it");
  schedule.actions[0].what = What::Spill;
  EXPECT_EQ(passed().levels[kConv], kBefore + 3_MiB);
  schedule.actions[0] = {.what = What::Drop, .at = OpIndex{kSplit}, .after = true, .value = q};
  EXPECT_EQ(refusal(),
            "before op 7 (sgd_): value 10 (split 3) is dropped at op 3 (split) while its storage lives, and "
            "not made again: spill it");
  recompute_before(kConvGrad, kSplit, {q});
  EXPECT_EQ(refusal(), "");
  schedule.actions = {{.what = What::Drop, .at = OpIndex{kPool}, .after = true, .value = p}};
  EXPECT_EQ(refusal(),
            "before op 5 (grad): value 9 (split 3) is dropped at op 4 (pool) while its storage lives, and "
            "not made again: spill it");
}

// --- holds

TEST_F(Verifier, RefusesAHoldThatIsNeverDropped) {
  after(kPool, What::Hold, p);
  EXPECT_EQ(refusal(), "the end of the step: value 9 (split 3) is held and not dropped when the step ends");
}

TEST_F(Verifier, RefusesAHoldOfWhatIsNotInALivingStorage) {
  after(kNorm, What::Drop, a);
  after(kNorm, What::Hold, a);
  EXPECT_EQ(refusal(),
            "op 1 (norm): hold of value 4 (conv 0) after it: it is not there: "
            "it was dropped at op 1 (norm)");
  schedule.actions.clear();
  after(kPool, What::Hold, p);
  after(kPool, What::Hold, p);
  EXPECT_EQ(refusal(), "op 4 (pool): hold of value 9 (split 3) after it: its storage is held already");
  schedule.actions[1].at = OpIndex{kGrad};
  EXPECT_EQ(refusal(), "op 5 (grad): hold of value 9 (split 3) after it: its storage is dead");
  schedule.actions.clear();
  recompute_before(kGrad, kNorm, {y});
  before(kGrad, What::Hold, y);
  EXPECT_EQ(refusal(), "op 5 (grad): hold of value 5 (norm 1) before it: it is in a storage of Ullage's own");
}

TEST_F(Verifier, LetsWhatIsHeldBeReadSpilledAndRestored) {
  step.ops[kPool].recompute = Recompute{{p}, Seconds{}, 1_MiB};
  after(kPool, What::Hold, p);
  after(kGrad, What::Spill, p);
  before(kConvGrad, What::Restore, p);
  recompute_before(kConvGrad, kPool, {z});
  before(kConvGrad, What::Drop, z);
  before(kConvGrad, What::Drop, p);
  EXPECT_EQ(passed().levels[kConvGrad], kBefore + 10_MiB + 512_B);
}

TEST_F(Verifier, HoldsSmallStoragesButDoesNotDropThemWhileTheyLive) {
  after(kConvGrad, What::Hold, mean);
  before(kSgd, What::Drop, mean);
  EXPECT_EQ(passed().levels[kSgd], kBefore + 256_B);
  schedule.actions[1] = {.what = What::Drop, .at = OpIndex{kConvGrad}, .after = true, .value = mean};
  EXPECT_EQ(refusal(), "op 6 (conv_grad): drop of value 6 (norm 1) after it: its storage lives and cannot be moved");
}

TEST_F(Verifier, RefusesWhatWasMadeAgainAndIsNeverDropped) {
  recompute_before(kGrad, kNorm, {y});
  EXPECT_EQ(refusal(),
            "the end of the step: value 5 (norm 1) was made again and is not dropped when the step "
            "ends");
}

// --- copies

TEST_F(Verifier, RefusesASpillOfAStorageThatCannotBeMoved) {
  after(kNorm, What::Spill, mean);
  EXPECT_EQ(refusal(), "op 1 (norm): spill of value 6 (norm 1) after it: its storage cannot be moved");
}

TEST_F(Verifier, RefusesASpillOfWhatIsNotThere) {
  before(kConv, What::Spill, a);
  EXPECT_EQ(refusal(), "op 0 (conv): spill of value 4 (conv 0) before it: it is not there: it is not made yet");
}

TEST_F(Verifier, RefusesARestoreOfWhatIsNotSpilled) {
  after(kNorm, What::Restore, a);
  EXPECT_EQ(refusal(), "op 1 (norm): restore of value 4 (conv 0) after it: it is not spilled: it is there");
  schedule.actions[0].what = What::ReadAhead;
  EXPECT_EQ(refusal(), "op 1 (norm): read ahead of value 4 (conv 0) after it: it is not spilled: it is there");
}

TEST_F(Verifier, RefusesASecondReadAhead) {
  after(kNorm, What::Spill, a);
  after(kNorm, What::ReadAhead, a);
  after(kNorm, What::ReadAhead, a);
  EXPECT_EQ(refusal(),
            "op 1 (norm): read ahead of value 4 (conv 0) after it: it is not spilled: "
            "it is read ahead but not restored");
  schedule.actions[2].what = What::Spill;
  EXPECT_EQ(refusal(), "op 1 (norm): spill of value 4 (conv 0) after it: it is read ahead but not restored");
}

TEST_F(Verifier, RefusesAWriteAheadOfWhatIsSpilledOrWritten) {
  after(kNorm, What::WriteAhead, a);
  after(kNorm, What::WriteAhead, a);
  EXPECT_EQ(refusal(), "op 1 (norm): write ahead of value 4 (conv 0) after it: it is being written already");
  schedule.actions[0].what = What::Spill;
  EXPECT_EQ(refusal(), "op 1 (norm): write ahead of value 4 (conv 0) after it: it is spilled already");
}

TEST_F(Verifier, RefusesAWriteAheadThatIsNotFollowedByItsSpill) {
  after(kNorm, What::WriteAhead, y);
  EXPECT_EQ(refusal(), "op 2 (relu_): writes over value 5 (norm 1), which is being written ahead");
  schedule.actions[0].value = a;
  EXPECT_EQ(refusal(), "before op 7 (sgd_): value 4 (conv 0) is written ahead but not spilled when its storage dies");
  after(kNorm, What::Drop, a);
  EXPECT_EQ(refusal(), "op 1 (norm): drop of value 4 (conv 0) after it: it is written ahead but not spilled");
  schedule.actions.clear();
  after(kSgd, What::WriteAhead, gradient);
  EXPECT_EQ(refusal(),
            "the end of the step: value 13 (conv_grad 6) is written ahead but not spilled when the "
            "step ends");
}

TEST_F(Verifier, RefusesAReadAheadThatIsNotFollowedByItsRestore) {
  after(kSplit, What::Spill, q);
  after(kSplit, What::ReadAhead, q);
  EXPECT_EQ(refusal(), "before op 7 (sgd_): value 10 (split 3) is read ahead but not restored when its storage dies");
  after(kPool, What::Drop, q);
  EXPECT_EQ(refusal(), "op 4 (pool): drop of value 10 (split 3) after it: it is read ahead but not restored");
}

TEST_F(Verifier, LetsWhatIsSpilledDieOrBeDropped) {
  after(kSplit, What::Spill, q);
  EXPECT_EQ(passed().levels[kPool], kBefore + 7_MiB + 512_B);
  after(kConvGrad, What::Hold, q);
  after(kSgd, What::Drop, q);
  EXPECT_EQ(passed().levels[kPool], kBefore + 7_MiB + 512_B);
  EXPECT_EQ(passed().levels[kSgd], kBefore);
}

}  // namespace
}  // namespace ullage::plan
