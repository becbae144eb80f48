// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/blocks.h"

#include "ullage/train/classifiers.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

namespace ullage::train {
namespace {

using at::Tensor;

std::int64_t numbers(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

// A parameter or a buffer by its name in torchvision.
Tensor named(const torch::nn::Module& module, const std::string& name) {
  const auto parameters = module.named_parameters();
  const Tensor* found = parameters.find(name);
  return found ? *found : module.named_buffers()[name];
}

// Draws all parameters and running averages; variances become positive.
void draw(torch::nn::Module& module) {
  module.to(torch::kFloat64);
  for (const Tensor& parameter : module.parameters()) parameter.normal_();
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().is_floating_point()) buffer.value().uniform_(0.5, 2);
}

double most_apart(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// Does what the layers of a block do, with torch's functions and the block's keys alone.
struct Reference {
  const torch::nn::Module& block;

  Tensor of(const std::string& name) const { return named(block, name); }

  Tensor convolution(const Tensor& x, const std::string& layer, std::int64_t stride = 1) const {
    const Tensor weight = of(layer + ".weight");
    return torch::conv2d(x, weight, {}, stride, (weight.size(2) - 1) / 2, 1, x.size(1) / weight.size(1));
  }

  Tensor norm(const Tensor& x, const std::string& layer) const {
    const auto across = [&](const char* part) { return of(layer + part).reshape({1, -1, 1, 1}); };
    return (x - across(".running_mean")) / (across(".running_var") + 1e-5).sqrt() * across(".weight") + across(".bias");
  }

  Tensor pixels(const Tensor& x, const std::string& layer) const {  // a convolution of one pixel with a bias
    return torch::conv2d(x, of(layer + ".weight"), of(layer + ".bias"));
  }

  Tensor squeeze_excitation(const Tensor& x, const std::string& before) const {
    const Tensor squeezed = torch::silu(pixels(x.mean({2, 3}, true), before + "fc1"));
    return x * pixels(squeezed, before + "fc2").sigmoid();
  }
};

class TrainBlocks : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }

 private:
  const torch::NoGradGuard no_grad_;
};

TEST_F(TrainBlocks, SeparableConv2dIsTheConvolutionWithTheProductOfItsWeights) {
  const Tensor x = torch::randn({2, 5, 12, 9}, torch::kFloat64);
  const SeparableOptions cases[] = {{5, 7}, {5, 7, 4, 2, 1}, {5, 3, 5, 1, 2, true}};
  for (const SeparableOptions& o : cases) {
    SeparableConv2d layer(o);
    draw(*layer);
    const Tensor product =
        named(*layer, "pointwise.weight") * named(*layer, "depthwise.weight").squeeze(1).unsqueeze(0);
    const Tensor bias = o.bias ? named(*layer, "pointwise.bias") : Tensor();
    EXPECT_LT(most_apart(layer(x), torch::conv2d(x, product, bias, o.stride, o.padding)), 1e-11);
    EXPECT_EQ(numbers(*layer), o.from * o.kernel * o.kernel + o.from * o.to + (o.bias ? o.to : 0));
  }
}

// <A x, y> = <x, A' y>, if A' has the weights of A transposed.
TEST_F(TrainBlocks, SeparableConvTranspose2dIsTheTransposeOfSeparableConv2d) {
  SeparableConv2d down(SeparableOptions{5, 7, 4, 2, 1});
  SeparableConvTranspose2d up(SeparableOptions{7, 5, 4, 2, 1});
  draw(*down);
  draw(*up);
  named(*up, "depthwise.weight").copy_(named(*down, "depthwise.weight"));
  named(*up, "pointwise.weight").copy_(named(*down, "pointwise.weight").transpose(0, 1));
  const Tensor x = torch::randn({2, 5, 8, 8}, torch::kFloat64), y = torch::randn({2, 7, 4, 4}, torch::kFloat64);
  EXPECT_LT(most_apart((down(x) * y).sum(), (x * up(y)).sum()), 1e-10);
  EXPECT_EQ(numbers(*up), numbers(*down));
}

TEST_F(TrainBlocks, InvertedResidualWidensFiltersNarrowsAndAdds) {
  const Tensor x = torch::randn({2, 4, 9, 6}, torch::kFloat64);
  // from, to, stride, expand: with and without the input added, a stride, and no widening
  const InvertedResidualOptions cases[] = {{4, 4, 1, 6}, {4, 5, 1, 6}, {4, 4, 2, 3}, {4, 4, 1, 1}};
  for (const InvertedResidualOptions& o : cases) {
    InvertedResidual block(o);
    draw(*block);
    block->eval();
    const Reference is{*block};
    Tensor y = x;
    int layer = 0;
    const auto next = [&] { return "conv." + std::to_string(layer++); };
    const auto activated = [&](std::int64_t stride) {
      const std::string name = next();
      return is.norm(is.convolution(y, name + ".0", stride), name + ".1").clamp(0, 6);
    };
    if (o.expand != 1) y = activated(1);
    y = activated(o.stride);
    y = is.convolution(y, next());
    y = is.norm(y, next());
    if (o.stride == 1 && o.from == o.to) y = y + x;
    EXPECT_LT(most_apart(block(x), y), 1e-10) << o.to << " " << o.stride << " " << o.expand;
  }
}

TEST_F(TrainBlocks, SqueezeExcitationWeighsChannelsByTheirMeans) {
  const Tensor x = torch::randn({2, 8, 5, 7}, torch::kFloat64);
  SqueezeExcitation block(8, 2);
  draw(*block);
  EXPECT_LT(most_apart(block(x), Reference{*block}.squeeze_excitation(x, "")), 1e-12);
  EXPECT_EQ(numbers(*block), 8 * 2 + 2 + 2 * 8 + 8);
}

TEST_F(TrainBlocks, MBConvIsAnInvertedResidualWithSqueezeAndExcitation) {
  const Tensor x = torch::randn({2, 8, 9, 6}, torch::kFloat64);
  // from, to, kernel, stride, expand, drop: what is dropped in training is kept in evaluation
  const MBConvOptions cases[] = {{8, 8, 3, 1, 6, 0.5}, {8, 4, 5, 1, 6}, {8, 8, 5, 2, 4}, {8, 8, 3, 1, 1}};
  for (const MBConvOptions& o : cases) {
    MBConv block(o);
    draw(*block);
    block->eval();
    const Reference is{*block};
    Tensor y = x;
    int layer = 0;
    const auto next = [&] { return "block." + std::to_string(layer++); };
    const auto normed = [&](std::int64_t stride) {
      const std::string name = next();
      return is.norm(is.convolution(y, name + ".0", stride), name + ".1");
    };
    if (o.expand != 1) y = torch::silu(normed(1));
    y = torch::silu(normed(o.stride));
    y = is.squeeze_excitation(y, next() + ".");
    y = normed(1);
    if (o.stride == 1 && o.from == o.to) y = y + x;
    EXPECT_LT(most_apart(block(x), y), 1e-10) << o.to << " " << o.kernel << " " << o.stride << " " << o.expand;
  }
}

TEST_F(TrainBlocks, MBConvDropsWholeSamplesInTrainingAndScalesTheOthers) {
  const double drop = 0.25;
  MBConv with(MBConvOptions{8, 8, 3, 1, 6, drop}), without(MBConvOptions{8, 8, 3, 1, 6});
  draw(*with);
  draw(*without);
  for (const auto& parameter : without->named_parameters()) parameter.value().copy_(named(*with, parameter.key()));
  const Tensor x = torch::randn({64, 8, 4, 4}, torch::kFloat64);
  const Tensor added = with(x) - x, whole = without(x) - x;  // in training both take their batch's averages
  int dropped = 0;
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    const bool none = added[i].abs().max().item<double>() == 0;
    dropped += none;
    const Tensor expected = none ? torch::zeros_like(whole[i]) : whole[i] / (1 - drop);
    EXPECT_LT(most_apart(added[i], expected), 1e-10);
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, 40);  // 16 are expected
}

TEST_F(TrainBlocks, ClassifiersHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(numbers(*mobilenet_v2()), 3'504'872);
  EXPECT_EQ(numbers(*mobilenet_v2({1000, 0.5})), 1'968'680);
  EXPECT_EQ(numbers(*efficientnet_b0()), 5'288'548);
}

TEST_F(TrainBlocks, ClassifiersTakeOtherNumbersOfClassesAndSmallPictures) {
  for (Classifier net : {mobilenet_v2({10}), efficientnet_b0({10})}) {
    net->eval();
    EXPECT_EQ(net->forward(torch::randn({2, 3, 32, 48})).sizes(), (at::IntArrayRef{2, 10}));
  }
}

}  // namespace
}  // namespace ullage::train
