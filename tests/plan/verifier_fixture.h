// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests of the verifier: a step that has each feature once, and a schedule for it that grows action by action.

#include "plan/step_writer.h"
#include "ullage/plan/verify/verifier.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ullage::plan::test {

using What = Action::What;

inline constexpr Bytes kNoBudget{UINT64_MAX};

// Values are named after their storages. If an op writes in place, the name of the new value ends in 2.
class VerifierFixture : public ::testing::Test {
 protected:
  VerifierFixture() {
    weight_ = b_.from_before(1_MiB, "weight"), weight = b_.value(weight_);
    bias_ = b_.from_before(1000_B, "bias"), bias = b_.value(bias_);
    old_gradient_ = b_.from_before(1_MiB, "old gradient"), old_gradient = b_.value(old_gradient_);
    x_ = b_.born(1_MiB, "x"), x = b_.value(x_);
    op({.name = "conv", .reads = {x_, weight_}, .makes = {2_MiB}, .scratch = 1_MiB}, {&a_});
    a = b_.value(a_);
    op({.name = "norm", .reads = {a_, weight_, bias_}, .makes = {2_MiB, 256_B, 256_B}, .batch_norm = Seconds{1e-4}},
       {&y_, &mean_, &deviation_});
    y = b_.value(y_), mean = b_.value(mean_);
    op({.name = "relu_", .writes = {y_}}, {});
    y2 = b_.value(y_);
    op({.name = "split", .reads = {y_}, .makes = {1_MiB, 1_MiB}}, {&p_, &q_});
    p = b_.value(p_), q = b_.value(q_);
    op({.name = "pool", .reads = {p_}, .makes = {1_MiB}, .recompute = false}, {&z_});
    z = b_.value(z_);
    b_.free(p_);
    op({.name = "grad", .reads = {z_, y_, a_}, .makes = {2_MiB}}, {&d_});
    d = b_.value(d_);
    b_.free(z_);
    op({.name = "conv_grad", .reads = {d_, x_, weight_}, .makes = {1_MiB}}, {&gradient_});
    gradient = b_.value(gradient_);
    for (const StorageIndex storage : {d_, a_, y_, mean_, deviation_, q_, x_, old_gradient_}) b_.free(storage);
    op({.name = "sgd_", .reads = {gradient_}, .writes = {weight_}}, {});
    weight2 = b_.value(weight_);
    op({.name = "count", .reads = {gradient_}, .makes = {1_MiB}}, {&count_});
    b_.free(count_);
    step = b_.step(5_MiB);
  }
  static constexpr OpIndex kConv{0}, kNorm{1}, kRelu{2}, kSplit{3}, kPool{4}, kGrad{5}, kConvGrad{6}, kSgd{7},
      kCount{8};

  void op(const OpSpec& spec, const std::vector<StorageIndex*>& made) {
    const std::vector<StorageIndex> storages = b_.op(spec);
    for (std::size_t i = 0; i < made.size(); ++i) *made[i] = storages.at(i);
  }

  void before(OpIndex at, What what, ValueIndex value) { add({.what = what, .at = at, .value = value}); }
  void after(OpIndex at, What what, ValueIndex value) { add({.what = what, .at = at, .after = true, .value = value}); }
  void recompute_before(OpIndex at, OpIndex op, std::vector<ValueIndex> keeps, What what = What::Recompute) {
    add({.what = what, .at = at, .value = {}, .op = op, .keeps = std::move(keeps)});
  }
  void recompute_after(OpIndex at, OpIndex op, std::vector<ValueIndex> keeps, What what = What::Recompute) {
    add({.what = what, .at = at, .after = true, .value = {}, .op = op, .keeps = std::move(keeps)});
  }
  void add(Action action) { schedule.actions.push_back(std::move(action)); }

  // Returns verify()'s error for the schedule; empty if it passes.
  std::string refusal(Bytes budget = kNoBudget) const {
    const auto verified = verify(step, schedule, budget);
    if (verified.ok()) return "";
    EXPECT_EQ(verified.error().kind, Error::Kind::BadArgument);
    return verified.error().text();
  }
  Verified passed() const {
    const auto verified = verify(step, schedule, kNoBudget);
    if (verified.ok()) return *verified;
    ADD_FAILURE() << verified.error().text();
    Verified none;
    none.levels.assign(step.ops.size(), Bytes{});
    return none;
  }

  StepWriter b_;
  StorageIndex weight_, bias_, old_gradient_, x_, a_, y_, mean_, deviation_, p_, q_, z_, d_, gradient_, count_;
  ValueIndex weight, weight2, bias, old_gradient, x, a, y, y2, mean, p, q, z, d, gradient;
  Step step;
  Schedule schedule;
};

inline constexpr Bytes kBefore = 7_MiB + 1000_B;  // when the step begins: 5 of others, weight, bias, old gradient

}  // namespace ullage::plan::test
