// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/blocks.h"

#include "ullage/base/check.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/types.h>

#include <algorithm>

namespace ullage::train {
namespace {

namespace nn = torch::nn;

nn::Conv2dOptions pointwise_of(const SeparableOptions& o) { return nn::Conv2dOptions(o.from, o.to, 1).bias(o.bias); }

// Drops samples, and scales the others so that the mean stays: torchvision's "row" mode, which draws the same numbers.
at::Tensor without_some(const at::Tensor& x, double drop) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape.front() = x.size(0);
  at::Tensor kept = torch::empty(shape, x.options()).bernoulli_(1 - drop);
  if (drop < 1) kept.div_(1 - drop);
  return x * kept;
}

}  // namespace

at::Tensor LayersImpl::forward(const at::Tensor& input) {
  at::Tensor x = input;
  for (nn::AnyModule& layer : layers_) x = layer.forward(x);
  return x;
}

SeparableConv2dImpl::SeparableConv2dImpl(const SeparableOptions& o)
    : depthwise_(register_module("depthwise", nn::Conv2d(nn::Conv2dOptions(o.from, o.from, o.kernel)
                                                             .stride(o.stride)
                                                             .padding(o.padding)
                                                             .groups(o.from)
                                                             .bias(false)))),
      pointwise_(register_module("pointwise", nn::Conv2d(pointwise_of(o)))) {}

at::Tensor SeparableConv2dImpl::forward(const at::Tensor& input) { return pointwise_(depthwise_(input)); }

SeparableConvTranspose2dImpl::SeparableConvTranspose2dImpl(const SeparableOptions& o)
    : pointwise_(register_module("pointwise", nn::Conv2d(pointwise_of(o)))),
      depthwise_(register_module("depthwise", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(o.to, o.to, o.kernel)
                                                                      .stride(o.stride)
                                                                      .padding(o.padding)
                                                                      .groups(o.to)
                                                                      .bias(false)))) {}

at::Tensor SeparableConvTranspose2dImpl::forward(const at::Tensor& input) { return depthwise_(pointwise_(input)); }

Layers conv_norm(const ConvNormOptions& o) {
  Layers layers;
  layers->push_back(nn::Conv2d(nn::Conv2dOptions(o.from, o.to, o.kernel)
                                   .stride(o.stride)
                                   .padding((o.kernel - 1) / 2)
                                   .groups(o.groups)
                                   .bias(false)));
  layers->push_back(nn::BatchNorm2d(o.to));
  if (o.activation == Activation::ReLU6) layers->push_back(nn::ReLU6(nn::ReLU6Options().inplace(true)));
  if (o.activation == Activation::SiLU) layers->push_back(nn::SiLU());
  return layers;
}

InvertedResidualImpl::InvertedResidualImpl(const InvertedResidualOptions& o)
    : adds_input_(o.stride == 1 && o.from == o.to) {
  ULLAGE_CHECK(o.stride == 1 || o.stride == 2, "a stride of 1 or 2");
  const std::int64_t inside = o.from * o.expand;
  if (o.expand != 1) conv_->push_back(conv_norm({o.from, inside, 1, 1, 1, Activation::ReLU6}));
  conv_->push_back(conv_norm({inside, inside, 3, o.stride, inside, Activation::ReLU6}));
  conv_->push_back(nn::Conv2d(nn::Conv2dOptions(inside, o.to, 1).bias(false)));
  conv_->push_back(nn::BatchNorm2d(o.to));
  register_module("conv", conv_);
}

at::Tensor InvertedResidualImpl::forward(const at::Tensor& input) {
  const at::Tensor out = conv_(input);
  return adds_input_ ? input + out : out;
}

SqueezeExcitationImpl::SqueezeExcitationImpl(std::int64_t channels, std::int64_t squeezed)
    : fc1_(register_module("fc1", nn::Conv2d(nn::Conv2dOptions(channels, squeezed, 1)))),
      fc2_(register_module("fc2", nn::Conv2d(nn::Conv2dOptions(squeezed, channels, 1)))) {}

at::Tensor SqueezeExcitationImpl::forward(const at::Tensor& input) {
  return torch::sigmoid(fc2_(torch::silu(fc1_(torch::adaptive_avg_pool2d(input, {1, 1}))))) * input;
}

MBConvImpl::MBConvImpl(const MBConvOptions& o) : adds_input_(o.stride == 1 && o.from == o.to), drop_(o.drop) {
  ULLAGE_CHECK(o.stride == 1 || o.stride == 2, "a stride of 1 or 2");
  ULLAGE_CHECK(o.drop >= 0 && o.drop <= 1, "a probability");
  const std::int64_t inside = o.from * o.expand;
  if (o.expand != 1) block_->push_back(conv_norm({o.from, inside, 1, 1, 1, Activation::SiLU}));
  block_->push_back(conv_norm({inside, inside, o.kernel, o.stride, inside, Activation::SiLU}));
  block_->push_back(SqueezeExcitation(inside, std::max<std::int64_t>(1, o.from / 4)));
  block_->push_back(conv_norm({inside, o.to, 1}));
  register_module("block", block_);
}

at::Tensor MBConvImpl::forward(const at::Tensor& input) {
  at::Tensor out = block_(input);
  if (!adds_input_) return out;
  if (is_training() && drop_ > 0) out = without_some(out, drop_);
  return out + input;
}

}  // namespace ullage::train
