// SPDX-License-Identifier: Apache-2.0
#pragma once

// Blocks of small architectures: depthwise-separable convolutions, MobileNetV2's inverted residual, EfficientNet's
// MBConv with squeeze-and-excitation. Children have the names that they have in torchvision, so its state_dicts fit.
//
// forward() takes (batch, from, height, width) and returns (batch, to, height', width'), each side as said below.
//
// Few parameters are not few bytes. A separable convolution keeps one more activation for backward than the convolution
// that it replaces. The residual blocks widen their input inside, sixfold in most places. Measure, or run `ullage
// predict`.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ullage::train {

// Runs layers one after the other; their names are "0", "1", ... Use it in place of torch::nn::Sequential inside
// another: Sequential's forward() is a template, so a Sequential cannot hold one.
class LayersImpl final : public torch::nn::Module {
 public:
  template <class Holder>
  void push_back(Holder layer) {
    layers_.emplace_back(register_module(std::to_string(layers_.size()), std::move(layer)));
  }
  at::Tensor forward(const at::Tensor& input);

 private:
  std::vector<torch::nn::AnyModule> layers_;
};
TORCH_MODULE(Layers);

// Options of a separable convolution, which stands for a plain one and has two parts. "depthwise" has one kernel for
// each channel and works on the larger picture of the two, input and output. "pointwise" is a convolution of one pixel
// over all channels, works on the smaller picture and has the bias.
struct SeparableOptions {
  std::int64_t from = 0;  // channels of the input
  std::int64_t to = 0;    // channels of the output
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  bool bias = false;
};

// Runs depthwise with the stride, then pointwise on the smaller result. A side s becomes
// (s + 2 padding - kernel) / stride + 1, rounded down.
class SeparableConv2dImpl final : public torch::nn::Module {
 public:
  explicit SeparableConv2dImpl(const SeparableOptions& options);
  at::Tensor forward(const at::Tensor& input);

 private:
  torch::nn::Conv2d depthwise_{nullptr}, pointwise_{nullptr};
};
TORCH_MODULE(SeparableConv2d);

// The transpose of SeparableConv2d: runs pointwise on the smaller input, then depthwise with the stride. A side s
// becomes (s - 1) stride - 2 padding + kernel.
class SeparableConvTranspose2dImpl final : public torch::nn::Module {
 public:
  explicit SeparableConvTranspose2dImpl(const SeparableOptions& options);
  at::Tensor forward(const at::Tensor& input);

 private:
  torch::nn::Conv2d pointwise_{nullptr};
  torch::nn::ConvTranspose2d depthwise_{nullptr};
};
TORCH_MODULE(SeparableConvTranspose2d);

enum class Activation { None, ReLU6, SiLU };

// A convolution that keeps the side (or divides it by the stride, rounded up) if `kernel` is odd: "0". Then BatchNorm:
// "1". Then the activation: "2", if there is one.
struct ConvNormOptions {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  Activation activation = Activation::None;
};
Layers conv_norm(const ConvNormOptions& options);

struct InvertedResidualOptions {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t stride = 1;
  std::int64_t expand = 6;  // the channels inside are `from` times this
};

// MobileNetV2 (https://arxiv.org/abs/1801.04381): widen, depthwise, narrow without an activation. The input is added
// if its shape is the output's. A side is divided by the stride, rounded up. ContractError: a stride other than 1 or 2.
class InvertedResidualImpl final : public torch::nn::Module {
 public:
  explicit InvertedResidualImpl(const InvertedResidualOptions& options);
  at::Tensor forward(const at::Tensor& input);

 private:
  bool adds_input_;
  Layers conv_;
};
TORCH_MODULE(InvertedResidual);

// Weighs each channel by a factor that is computed from the means of all channels (https://arxiv.org/abs/1709.01507),
// with SiLU inside and a sigmoid at the end. The result has the input's shape.
class SqueezeExcitationImpl final : public torch::nn::Module {
 public:
  SqueezeExcitationImpl(std::int64_t channels, std::int64_t squeezed);
  at::Tensor forward(const at::Tensor& input);

 private:
  torch::nn::Conv2d fc1_{nullptr}, fc2_{nullptr};
};
TORCH_MODULE(SqueezeExcitation);

struct MBConvOptions {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t expand = 6;
  // In training, if the input is added to the output: the probability that a sample's output is the input alone
  // (stochastic depth).
  double drop = 0;
};

// EfficientNet (https://arxiv.org/abs/1905.11946): an inverted residual with SiLU, and squeeze-and-excitation after the
// depthwise convolution, to a quarter of `from` channels, at least 1. ContractError: a stride other than 1 or 2, or a
// `drop` outside [0, 1].
class MBConvImpl final : public torch::nn::Module {
 public:
  explicit MBConvImpl(const MBConvOptions& options);
  at::Tensor forward(const at::Tensor& input);

 private:
  bool adds_input_;
  double drop_;
  Layers block_;
};
TORCH_MODULE(MBConv);

}  // namespace ullage::train
