// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/classifiers.h"

#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace ullage::train {
namespace {

namespace nn = torch::nn;

// Rounds to the nearest multiple of 8, at least 8. If that is below 90 % of `wanted`, takes the next multiple.
std::int64_t rounded_channels(double wanted) {
  constexpr std::int64_t kMultiple = 8;
  const auto nearest = static_cast<std::int64_t>(wanted + kMultiple / 2.0) / kMultiple * kMultiple;
  const std::int64_t channels = std::max(kMultiple, nearest);
  return static_cast<double>(channels) < 0.9 * wanted ? channels + kMultiple : channels;
}

Layers head(double dropout, std::int64_t from, std::int64_t classes) {
  Layers layers;
  layers->push_back(nn::Dropout(nn::DropoutOptions(dropout)));
  layers->push_back(nn::Linear(from, classes));
  return layers;
}

// Initializes convolutions by Kaiming He's rule, weights of linear layers by `start_linear`, and biases with 0, as
// torchvision does. Visits the modules in torchvision's order, so that a seed gives the same weights as there.
template <class StartLinear>
void start(nn::Module& network, const StartLinear& start_linear) {
  network.apply([&](nn::Module& module) {
    if (auto* convolution = module.as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut);
      if (convolution->bias.defined()) nn::init::zeros_(convolution->bias);
    } else if (auto* linear = module.as<nn::Linear>()) {
      start_linear(linear->weight);
      nn::init::zeros_(linear->bias);
    }
  });
}

}  // namespace

ClassifierImpl::ClassifierImpl(Layers features, Layers classifier)
    : features_(register_module("features", std::move(features))),
      classifier_(register_module("classifier", std::move(classifier))) {}

at::Tensor ClassifierImpl::forward(const at::Tensor& pictures) {
  return classifier_(torch::flatten(torch::adaptive_avg_pool2d(features_(pictures), {1, 1}), 1));
}

Classifier mobilenet_v2(const MobileNetV2Options& o) {
  struct Stage {
    std::int64_t expand, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  std::int64_t from = rounded_channels(32 * o.width);
  Layers features;
  features->push_back(conv_norm({3, from, 3, 2, 1, Activation::ReLU6}));
  for (const Stage& stage : kStages) {
    const std::int64_t to = rounded_channels(static_cast<double>(stage.channels) * o.width);
    for (std::int64_t i = 0; i < stage.blocks; ++i, from = to)
      features->push_back(InvertedResidual(InvertedResidualOptions{from, to, i == 0 ? stage.stride : 1, stage.expand}));
  }
  const std::int64_t last = rounded_channels(1280 * std::max(1.0, o.width));
  features->push_back(conv_norm({from, last, 1, 1, 1, Activation::ReLU6}));
  Classifier network(features, head(o.dropout, last, o.classes));
  start(*network, [](const at::Tensor& weight) { nn::init::normal_(weight, 0, 0.01); });
  return network;
}

Classifier efficientnet_b0(const EfficientNetOptions& o) {
  struct Stage {
    std::int64_t expand, kernel, stride, to, blocks;
  };
  constexpr Stage kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                               {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
  constexpr double kBlocks = 16;
  std::int64_t from = 32, block = 0;
  Layers features;
  features->push_back(conv_norm({3, from, 3, 2, 1, Activation::SiLU}));
  for (const Stage& stage : kStages) {
    Layers blocks;
    for (std::int64_t i = 0; i < stage.blocks; ++i, ++block, from = stage.to) {
      blocks->push_back(MBConv(MBConvOptions{from, stage.to, stage.kernel, i == 0 ? stage.stride : 1, stage.expand,
                                             o.drop * static_cast<double>(block) / kBlocks}));
    }
    features->push_back(blocks);
  }
  const std::int64_t last = 4 * from;
  features->push_back(conv_norm({from, last, 1, 1, 1, Activation::SiLU}));
  Classifier network(features, head(o.dropout, last, o.classes));
  start(*network, [](const at::Tensor& weight) {
    const double range = 1 / std::sqrt(static_cast<double>(weight.size(0)));
    nn::init::uniform_(weight, -range, range);
  });
  return network;
}

}  // namespace ullage::train
