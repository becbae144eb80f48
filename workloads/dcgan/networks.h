// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two networks of DCGAN for square pictures whose side is a power of two from 16 up. They extend pytorch/examples
// by its doubling rule: the noise becomes 4 x 4 pixels, then each layer doubles the side and halves the channels. The
// modules give state_dict the keys of pytorch/examples (main.{3k}.weight, main.{3k+1}.weight, ...).
//
//   256:  G  nz -> 2048 @4 -> 1024 @8 -> 512 @16 -> 256 @32 -> 128 @64 -> 64 @128 -> 3 @256      (64 features)
//         D  the same layers backwards, no BatchNorm after the first, one number at the end
//
// If `separable`, a layer from hidden channels to hidden channels becomes two: a depthwise and a pointwise convolution.
// Their keys are main.{3k}.depthwise.weight and main.{3k}.pointwise.weight. Layers that touch noise, colours or the
// probability stay as they are, because they would not become smaller.

#include "ullage/runtime/ops/torch_compat.h"

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace ullage::dcgan {

struct NetworkShape {
  std::int64_t image_size = 256;  // a power of two, 16 or more; ContractError otherwise
  std::int64_t nz = 100;
  std::int64_t ngf = 64;
  std::int64_t ndf = 64;
  std::int64_t max_channels = 0;  // cap on every layer; 0: no cap
  bool separable = false;         // hidden layers are depthwise-separable (ullage/train/blocks.h)
};

// Returns the channels at half the picture's side, a quarter, ... down to 4: {64, 128, 256, 512, 1024, 2048} for side
// 256 and 64 features.
std::vector<std::int64_t> channels(std::int64_t image_size, std::int64_t features, std::int64_t max_channels);

// Both networks run their layers in the short type under autocast, and the last function (Tanh, Sigmoid) in float32. In
// bfloat16 a probability near 1 would round to 1, and the logarithm of 1 minus it would not exist.

// Maps noise (batch, nz, 1, 1) to pictures (batch, 3, side, side) from -1 to 1.
class GeneratorImpl final : public torch::nn::Module {
 public:
  explicit GeneratorImpl(const NetworkShape& shape);
  torch::Tensor forward(const torch::Tensor& noise);

 private:
  torch::nn::Sequential main_;
};
TORCH_MODULE(Generator);

// Maps pictures (batch, 3, side, side) to the probability that each is real (batch).
class DiscriminatorImpl final : public torch::nn::Module {
 public:
  explicit DiscriminatorImpl(const NetworkShape& shape);
  torch::Tensor forward(const torch::Tensor& pictures);

 private:
  torch::nn::Sequential main_;
};
TORCH_MODULE(Discriminator);

// weights_init of pytorch/examples/dcgan: convolutions N(0, 0.02); BatchNorm's weight N(1, 0.02), its bias 0. It visits
// the modules in their order, so the same seed draws the same weights.
void init_weights(torch::nn::Module& network);

std::int64_t parameter_count(const torch::nn::Module& network);

}  // namespace ullage::dcgan
