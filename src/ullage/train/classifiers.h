// SPDX-License-Identifier: Apache-2.0
#pragma once

// MobileNetV2 and EfficientNet-B0 from the blocks, with torchvision's keys, outputs and first weights:
// load_state_dict() (state_dict.h) takes the files that torchvision publishes.

#include "ullage/train/blocks.h"

#include <torch/nn/modules/linear.h>

#include <cstdint>

namespace ullage::train {

// Layers that make features of pictures (batch, 3, height, width), and a linear layer on their mean: (batch, classes).
class ClassifierImpl final : public torch::nn::Module {
 public:
  ClassifierImpl(Layers features, Layers classifier);
  at::Tensor forward(const at::Tensor& pictures);

 private:
  Layers features_, classifier_;
};
TORCH_MODULE(Classifier);

struct MobileNetV2Options {
  std::int64_t classes = 1000;
  double width = 1;  // factor of every layer's channels; they are then rounded to a multiple of 8
  double dropout = 0.2;
};
Classifier mobilenet_v2(const MobileNetV2Options& options = {});

struct EfficientNetOptions {
  std::int64_t classes = 1000;
  double dropout = 0.2;
  double drop = 0.2;  // stochastic depth: block i of the 16, counted from 0, has MBConvOptions::drop of drop * i / 16
};
Classifier efficientnet_b0(const EfficientNetOptions& options = {});

}  // namespace ullage::train
