// SPDX-License-Identifier: Apache-2.0
#pragma once

// MobileNetV2 and EfficientNet-B0 from the blocks, with torchvision's keys and outputs. A seed gives the initial
// weights that it gives in torchvision. load_state_dict() (state_dict.h) takes the files that torchvision publishes.

#include "ullage/train/blocks.h"

#include <torch/nn/modules/linear.h>

#include <cstdint>

namespace ullage::train {

// Classifies pictures: (batch, 3, height, width) becomes (batch, classes). `features` are the layers that see the
// picture. `classifier` gets the mean of their result over the picture.
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
  double width = 1;  // factor of every layer's channels (of the last at least 1); then rounded to a multiple of 8
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
