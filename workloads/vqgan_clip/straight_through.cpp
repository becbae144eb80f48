// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/straight_through.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

struct ReplaceGrad : torch::autograd::Function<ReplaceGrad> {
  static Tensor forward(AutogradContext* context, const Tensor& shown, const Tensor& followed) {
    context->saved_data["shape"] = followed.sizes().vec();
    return shown.clone();
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    return {{}, gradients.front().sum_to_size(context->saved_data["shape"].toIntVector())};
  }
};

struct ClampWithGrad : torch::autograd::Function<ClampWithGrad> {
  static Tensor forward(AutogradContext* context, const Tensor& x, double low, double high) {
    context->saved_data["low"] = low;
    context->saved_data["high"] = high;
    context->save_for_backward({x});
    return x.clamp(low, high);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    const Tensor x = context->get_saved_variables().front();
    const Tensor inside = x.clamp(context->saved_data["low"].toDouble(), context->saved_data["high"].toDouble());
    const Tensor& gradient = gradients.front();
    return {gradient * (gradient * (x - inside) >= 0), {}, {}};
  }
};

}  // namespace

Tensor replace_grad(const Tensor& shown, const Tensor& followed) { return ReplaceGrad::apply(shown, followed); }

Tensor clamp_with_grad(const Tensor& x, double low, double high) { return ClampWithGrad::apply(x, low, high); }

}  // namespace ullage::vqgan_clip
