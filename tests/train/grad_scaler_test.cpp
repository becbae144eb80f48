// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/grad_scaler.h"

#include "ullage/train/autocast_guard.h"

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <limits>

namespace ullage::train {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

bool says(const Status& status, const std::string& words) {
  return !status.ok() && status.error().text().find(words) != std::string::npos;
}

class GradScalerTest : public ::testing::Test {
 protected:
  // Gradients of `values` for the weight. The loss is theirs times the weight.
  void backward(float value) { scaler.scale((weight * value).sum()).backward(); }
  Status iterate(float value) {
    optimizer.zero_grad();
    backward(value);
    scaler.step(optimizer);
    return scaler.update();
  }

  torch::Tensor weight = torch::ones({3}, torch::requires_grad());
  torch::optim::SGD optimizer{{weight}, torch::optim::SGDOptions(1).momentum(0.5)};
  GradScaler scaler{torch::kCPU, {.init_scale = 1024, .growth_interval = 2}};
};

TEST_F(GradScalerTest, AnInfinitySkipsTheStepAndNothingElse) {
  ASSERT_TRUE(iterate(1));
  const torch::Tensor before = weight.detach().clone();
  optimizer.zero_grad();
  backward(kInf);
  EXPECT_FALSE(scaler.step(optimizer));
  EXPECT_TRUE(torch::equal(weight.detach(), before));
  EXPECT_FALSE(torch::isfinite(weight.grad()).any().item<bool>()) << "the gradient stays for the program to see";
  ASSERT_TRUE(scaler.update());
  EXPECT_EQ(scaler.get_scale(), 512);
  EXPECT_EQ(scaler.get_growth_tracker(), 0);
  ASSERT_TRUE(iterate(1));
  EXPECT_EQ(weight[0].item<float>(), 1 - 1 - 1.5F) << "momentum is that of the step before the skipped one";
}

TEST_F(GradScalerTest, OneOfTwoOptimizersIsSkipped) {
  torch::Tensor other = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD second({other}, torch::optim::SGDOptions(1));
  const auto scaled = scaler.scale(std::vector{(weight * 1).sum(), (other * kInf).sum()});
  scaled[0].backward();
  scaled[1].backward();
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_FALSE(scaler.step(second));
  ASSERT_TRUE(scaler.update());
  EXPECT_EQ(scaler.get_scale(), 512) << "the scale is one for both";
  EXPECT_EQ(weight[0].item<float>(), 0);
  EXPECT_EQ(other[0].item<float>(), 1);
}

TEST_F(GradScalerTest, RefusesCallsInAnotherOrder) {
  EXPECT_THROW(scaler.step(optimizer), ContractError);
  EXPECT_THROW((void)scaler.update(), ContractError);
  backward(1);
  EXPECT_THROW((void)scaler.update(), ContractError);
  scaler.unscale_(optimizer);
  EXPECT_EQ(weight.grad()[0].item<float>(), 1);
  EXPECT_THROW(scaler.unscale_(optimizer), ContractError);
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_THROW(scaler.step(optimizer), ContractError);
  EXPECT_THROW(scaler.unscale_(optimizer), ContractError);
  ASSERT_TRUE(scaler.update());
  optimizer.zero_grad();
  EXPECT_THROW(scaler.step(optimizer), ContractError) << "no gradients";
  EXPECT_THROW(GradScaler(torch::kCPU, {.growth_factor = 1}), ContractError);
  EXPECT_THROW(GradScaler(torch::kCPU, {.backoff_factor = 1}), ContractError);
}

TEST_F(GradScalerTest, RefusesGradientsInHalf) {
  torch::Tensor half = torch::ones({2}, torch::dtype(torch::kHalf).requires_grad(true));
  torch::optim::SGD of_half({half}, torch::optim::SGDOptions(1));
  scaler.scale(half.sum()).backward();
  EXPECT_THROW(scaler.unscale_(of_half), ContractError);
}

TEST_F(GradScalerTest, UnscalesSparseGradients) {
  const torch::Tensor table = torch::ones({4, 2}, torch::requires_grad());
  torch::optim::SGD of_table({table}, torch::optim::SGDOptions(1));
  const torch::Tensor rows = torch::tensor({1, 1, 3});
  scaler.scale(torch::embedding(table, rows, -1, false, /*sparse=*/true).sum()).backward();
  scaler.unscale_(of_table);
  ASSERT_TRUE(table.grad().is_sparse());
  EXPECT_TRUE(torch::equal(table.grad().to_dense().select(1, 0), torch::tensor({0.F, 2.F, 0.F, 1.F})));
}

TEST_F(GradScalerTest, SaysAfterTwentyOverflowsThatTheScaleFellToNothing) {
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(iterate(kInf)) << i;
  const Status said = iterate(kInf);
  EXPECT_TRUE(says(said, "20 steps in a row")) << said.ok();
  EXPECT_TRUE(says(said, "from 1024 to 0.000976562")) << said.error().text();
  EXPECT_TRUE(says(said, "lower the learning rate")) << said.error().text();
  EXPECT_TRUE(iterate(kInf)) << "not at each one";
  EXPECT_TRUE(iterate(1));
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(iterate(kInf)) << "a good step begins a new row";
  EXPECT_FALSE(iterate(kInf));
}

TEST_F(GradScalerTest, SaysThatItIsNotNeededWithBfloat16) {
  const torch::Tensor x = torch::ones({2, 3});
  const auto loss_in = [&](at::ScalarType dtype) {
    const AutocastGuard guard(torch::kCPU, dtype);
    return torch::mm(x, weight.view({3, 1})).to(torch::kFloat32).sum();
  };
  scaler.scale(loss_in(torch::kBFloat16)).backward();
  EXPECT_NE(scaler.advice().find("not needed with bfloat16"), std::string::npos);
  EXPECT_TRUE(scaler.step(optimizer)) << "and it works";
  GradScaler of_half(torch::kCPU);
  of_half.scale(loss_in(torch::kHalf)).backward();
  EXPECT_EQ(of_half.advice(), "");
  GradScaler plain(torch::kCPU);
  plain.scale(weight.sum()).backward();
  EXPECT_EQ(plain.advice(), "");
}

TEST_F(GradScalerTest, StateGoesOutAndIn) {
  ASSERT_TRUE(iterate(1));
  const GradScaler::State state = scaler.state_dict();
  EXPECT_EQ(state, (GradScaler::State{{"scale", 1024},
                                      {"growth_factor", 2},
                                      {"backoff_factor", 0.5},
                                      {"growth_interval", 2},
                                      {"_growth_tracker", 1}}));
  GradScaler fresh(torch::kCPU);
  ASSERT_TRUE(fresh.load_state_dict(state));
  EXPECT_EQ(fresh.state_dict(), state) << "before its first scale()";
  GradScaler used(torch::kCPU);
  (void)used.scale(weight.sum());
  ASSERT_TRUE(used.load_state_dict(state));
  EXPECT_EQ(used.state_dict(), state);
  ASSERT_TRUE(iterate(1));
  EXPECT_EQ(scaler.get_scale(), 2048) << "it grew after two good updates";
}

TEST_F(GradScalerTest, RefusesAStateOfAnotherKind) {
  const GradScaler::State good = scaler.state_dict();
  EXPECT_TRUE(says(scaler.load_state_dict({}), "not enabled"));
  GradScaler::State one = good;
  one.erase("_growth_tracker");
  EXPECT_TRUE(says(scaler.load_state_dict(one), "no '_growth_tracker'"));
  one = good, one["hysteresis"] = 2;
  EXPECT_TRUE(says(scaler.load_state_dict(one), "'hysteresis'"));
  for (const auto& [name, value] : GradScaler::State{{"scale", -1},
                                                     {"scale", kInf},
                                                     {"growth_factor", 1},
                                                     {"backoff_factor", 2},
                                                     {"growth_interval", 0.5},
                                                     {"_growth_tracker", -1}}) {
    one = good, one[name] = value;
    EXPECT_TRUE(says(scaler.load_state_dict(one), name + " is ")) << name << value;
  }
  EXPECT_EQ(scaler.state_dict(), good);
}

TEST(GradScaler, DoesNothingIfItIsNotEnabled) {
  torch::Tensor weight = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({weight}, torch::optim::SGDOptions(1));
  GradScaler scaler(torch::kCPU, {.enabled = false});
  scaler.scale(weight.sum()).backward();
  scaler.unscale_(optimizer);
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_TRUE(scaler.update());
  EXPECT_EQ(weight[0].item<float>(), 0);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
  if (!at::globalContext().hasCUDA()) {
    const GradScaler on_a_card(torch::kCUDA);
    EXPECT_FALSE(on_a_card.is_enabled());
    EXPECT_NE(on_a_card.advice().find("no CUDA device"), std::string::npos);
  }
}

}  // namespace
}  // namespace ullage::train
