// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/accumulation.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

namespace ullage::train {
namespace {

using torch::Tensor;
namespace nn = torch::nn;

template <class T>
bool says(const Result<T>& result, const std::string& words) {
  return !result.ok() && result.error().text().find(words) != std::string::npos;
}

std::vector<Slice> slices_of(std::int64_t batch, std::int64_t micro) { return micro_batches(batch, micro).value(); }

double apart(const Tensor& ours, const Tensor& whole) {
  return ((ours - whole).abs().max() / whole.abs().max()).item<double>();
}

TEST(MicroBatches, CutsWithAShortLastOne) {
  const auto slices = micro_batches(10, 4);
  ASSERT_TRUE(slices);
  ASSERT_EQ(slices->size(), 3U);
  EXPECT_EQ((*slices)[2].begin, 8);
  EXPECT_EQ((*slices)[2].size(), 2);
  EXPECT_TRUE(torch::equal((*slices)[2].of(torch::arange(10)), torch::tensor({8, 9})));
  EXPECT_EQ(micro_batches(4, 4)->size(), 1U);
  EXPECT_TRUE(says(micro_batches(4, 5), "micro-batch of 5 samples cannot be cut from a batch of 4; give 1 to 4"));
  EXPECT_TRUE(says(micro_batches(4, 0), "micro-batch of 0"));
  EXPECT_TRUE(says(micro_batches(0, 1), "batch of 0"));
}

class AccumulationTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(5); }
  nn::Sequential net{nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 1)};
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(0.1)};
  std::vector<Tensor> gradients() {
    std::vector<Tensor> list;
    for (const Tensor& p : net->parameters()) list.push_back(p.grad().clone());
    optimizer.zero_grad();
    return list;
  }
};

// A sum of n float32 terms in another order differs by at most n * 2^-24 of the sum of their sizes; 1e-6 of the largest
// gradient is 16 roundings.
constexpr double kRounding = 1e-6;

TEST_F(AccumulationTest, HasTheGradientOfTheWholeBatchWithAShortLastOne) {
  const Tensor x = torch::randn({10, 6}), y = torch::randn({10, 1});
  torch::mse_loss(net->forward(x), y).backward();
  const std::vector<Tensor> whole = gradients();
  auto window = Accumulation::create(*net);
  ASSERT_TRUE(window);
  ASSERT_TRUE(window->begin(10));
  for (const Slice& s : slices_of(10, 4))
    ASSERT_TRUE(window->backward(torch::mse_loss(net->forward(s.of(x)), s.of(y)), static_cast<double>(s.size())));
  const auto ours = gradients();
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_LE(apart(ours[i], whole[i]), kRounding) << i;
}

// Masks of 7, 0 and 3 of 40 things, beside a loss over samples: dividing by the count of micro-batches would be wrong.
TEST_F(AccumulationTest, WeighsEachLossByWhatItAveragesOver) {
  const Tensor x = torch::randn({10, 4, 6}), y = torch::randn({10, 4});
  Tensor mask = torch::zeros({10, 4});
  mask.slice(0, 0, 2).copy_(torch::tensor({{1., 1., 1., 0.}, {1., 1., 1., 1.}}));
  mask.slice(0, 8, 9).copy_(torch::tensor({{1., 1., 1., 0.}}));
  const auto masked = [&](const Slice& s) {
    const Tensor m = s.of(mask);
    return ((net->forward(s.of(x)).squeeze(2) - s.of(y)).pow(2) * m).sum() / m.sum();
  };
  const auto of_samples = [&](const Slice& s) { return net->forward(s.of(x)).sum({1, 2}).pow(2).mean(); };
  (masked({0, 10}) + of_samples({0, 10})).backward();
  const std::vector<Tensor> whole = gradients();
  auto window = Accumulation::create(*net);
  ASSERT_TRUE(window->begin({{"samples", 10}, {"tokens", mask.sum().item<double>()}}));
  for (const Slice& s : slices_of(10, 4)) {
    const auto a = window->weigh(masked(s), s.of(mask).sum().item<double>(), "tokens");
    const auto b = window->weigh(of_samples(s), static_cast<double>(s.size()));
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->defined(), s.begin != 4);
    ASSERT_TRUE(window->backward(a->defined() ? *a + *b : *b));
  }
  const auto ours = gradients();
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_LE(apart(ours[i], whole[i]), kRounding) << i;
}

TEST_F(AccumulationTest, RefusesAWindowThatIsNotTheWhole) {
  const Tensor x = torch::randn({4, 6});
  auto window = Accumulation::create(*net);
  const auto before = net->parameters()[0].detach().clone();
  ASSERT_TRUE(window->begin(10));
  EXPECT_THROW((void)window->begin(10), ContractError);
  ASSERT_TRUE(window->backward(net->forward(x).mean(), 4));
  EXPECT_TRUE(says(window->step(optimizer), "4 of 10 samples"));
  EXPECT_TRUE(torch::equal(net->parameters()[0], before));
  EXPECT_TRUE(says(window->backward(net->forward(x).mean(), 7), "7 samples after 4 of 10"));
  EXPECT_TRUE(says(window->backward(net->forward(x).mean(), std::numeric_limits<double>::quiet_NaN()), "nan samples"));
  EXPECT_TRUE(says(window->weigh(net->forward(x).mean(), 1, "tokens"), "tokens"));
  ASSERT_TRUE(window->backward(net->forward(x).mean(), 6));
  EXPECT_TRUE(window->step(optimizer));
  EXPECT_FALSE(torch::equal(net->parameters()[0], before));
  EXPECT_THROW((void)window->step(optimizer), ContractError);
  EXPECT_TRUE(says(window->begin(0), "has 0 samples"));
}

TEST_F(AccumulationTest, ClipsAndScalesAtTheWindowsEndAlone) {
  const Tensor x = torch::randn({10, 6}), y = 1e3 * torch::randn({10, 1});
  GradScaler scaler(torch::kCPU, {.init_scale = 256});
  torch::mse_loss(net->forward(x), y).backward();
  const double norm = nn::utils::clip_grad_norm_(net->parameters(), 0.5);
  const std::vector<Tensor> whole = gradients();
  const std::vector<Tensor> start = [&] {
    std::vector<Tensor> list;
    for (const Tensor& p : net->parameters()) list.push_back(p.detach().clone());
    return list;
  }();
  auto window = Accumulation::create(*net, {.clip_norm = 0.5, .scaler = &scaler});
  ASSERT_TRUE(window->begin(10));
  for (const Slice& s : slices_of(10, 3))
    ASSERT_TRUE(window->backward(torch::mse_loss(net->forward(s.of(x)), s.of(y)), static_cast<double>(s.size())));
  const auto end = window->step(optimizer);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stepped);
  ASSERT_EQ(end->grad_norms.size(), 1U);
  EXPECT_NEAR(end->grad_norms[0], norm, 1e-5 * norm);
  EXPECT_GT(norm, 0.5);
  for (std::size_t i = 0; i < start.size(); ++i) {
    const Tensor step = (start[i] - net->parameters()[i].detach()) / 0.1;  // of the clipped gradient
    EXPECT_LE(apart(step, whole[i]), 1e-4) << i << ": the step itself is a difference of parameters";
  }
  EXPECT_EQ(scaler.get_growth_tracker(), 1) << "one update for four micro-batches";
}

TEST_F(AccumulationTest, AnInfinityInOneMicroBatchSkipsTheWindow) {
  GradScaler scaler(torch::kCPU, {.init_scale = 256});
  auto window = Accumulation::create(*net, {.scaler = &scaler});
  const auto before = net->parameters()[0].detach().clone();
  ASSERT_TRUE(window->begin(4));
  ASSERT_TRUE(window->backward(net->forward(torch::randn({2, 6})).mean(), 2));
  ASSERT_TRUE(window->backward(net->forward(torch::randn({2, 6})).mean() * std::numeric_limits<float>::infinity(), 2));
  const auto end = window->step(optimizer);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->stepped);
  EXPECT_TRUE(torch::equal(net->parameters()[0], before));
  EXPECT_EQ(scaler.get_scale(), 128);
}

TEST(Accumulation, FindsAndNamesLayersAcrossTheBatch) {
  nn::Sequential inner(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), nn::InstanceNorm2d(4));
  const auto net = std::make_shared<nn::Module>();
  net->register_module("0", inner.ptr());
  net->register_module("1", nn::GroupNorm(2, 4).ptr());
  net->register_module("2", nn::InstanceNorm2d(nn::InstanceNorm2dOptions(4).track_running_stats(true)).ptr());
  const auto refused = Accumulation::create(*net);
  EXPECT_TRUE(says(refused, "0.1 (BatchNorm2d): mean and variance")) << refused.ok();
  EXPECT_TRUE(says(refused, "2 (InstanceNorm2d): the running averages")) << refused.error().text();
  EXPECT_FALSE(says(refused, "GroupNorm2"));
  EXPECT_TRUE(says(Accumulation::create(*net, {.allow = {"0.1"}}), "2 (InstanceNorm2d)")) << "one is not enough";
  const auto allowed = Accumulation::create(*net, {.allow = {"BatchNorm2d", "2"}});
  ASSERT_TRUE(allowed) << allowed.error().text();
  ASSERT_EQ(allowed->differences().size(), 2U);
  EXPECT_EQ(allowed->differences()[0].layer, "0.1");
  EXPECT_NE(allowed->differences()[0].what.find("once a micro-batch"), std::string::npos);
  net->eval();
  EXPECT_TRUE(Accumulation::create(*net)) << "in evaluation the running averages are used";
  EXPECT_TRUE(says(Accumulation::create(*net, {.allow = {"0.7"}}), "'0.7' is in allow"));
  const nn::BatchNorm1d alone(nn::BatchNorm1dOptions(4).track_running_stats(false));
  alone.ptr()->eval();
  EXPECT_TRUE(says(Accumulation::create(*alone), "(BatchNorm1d)")) << "it has no running averages to use";
  EXPECT_TRUE(says(Accumulation::create(*nn::Linear(1, 1), {.clip_norm = 0}), "clip_norm is 0"));
}

TEST(Accumulation, FindsBatchNormThatIsCalledAsAFunction) {
  const Tensor weight = torch::ones({4}, torch::requires_grad()), bias = torch::zeros({4}, torch::requires_grad());
  const Tensor mean = torch::zeros({4}), variance = torch::ones({4});
  const auto loss = [&](bool training) {
    return torch::batch_norm(torch::randn({3, 4}), weight, bias, mean, variance, training, 0.1, 1e-5, false)
        .pow(2)
        .mean();
  };
  const nn::Linear unrelated(1, 1);
  auto window = Accumulation::create(*unrelated);
  ASSERT_TRUE(window->begin(6));
  EXPECT_TRUE(says(window->backward(loss(true), 3), "called as a function"));
  window->abandon();
  ASSERT_TRUE(window->begin(6));
  EXPECT_TRUE(window->backward(loss(false), 3));
  auto allowed = Accumulation::create(*unrelated, {.allow = {"batch_norm"}});
  ASSERT_TRUE(allowed->begin(3));
  EXPECT_TRUE(allowed->backward(loss(true), 3));
}

}  // namespace
}  // namespace ullage::train
