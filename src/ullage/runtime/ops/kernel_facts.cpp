// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/kernel_facts.h"

#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/ops/taped_op.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sin.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ullage::runtime {
namespace {

// Makes a tensor of irregular numbers, without a generator.
at::Tensor numbers(at::IntArrayRef sizes, double scale, double shift) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return (at::sin(at::arange(count, at::kFloat) * 12.9898) * scale + shift).view(sizes);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Does TapedOp::recompute_batch_norm() make the output for `x` again, bit by bit? `affine`: with weight and bias.
bool applies(const at::Tensor& x, bool affine) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::native_batch_norm", "");
  const at::Tensor weight = affine ? numbers({x.size(1)}, 0.7, 1.1) : at::Tensor();
  const at::Tensor bias = affine ? numbers({x.size(1)}, 1.3, 0.2) : at::Tensor();
  torch::jit::Stack stack{x, weight, bias, at::Tensor(), at::Tensor(), true, 0.1, 1e-5};
  const std::vector<c10::IValue> arguments(stack.begin(), stack.end());
  OpCall call;
  call.handle = &op;
  call.name = "aten::native_batch_norm";
  call.arguments = arguments;
  std::vector<StorageUse> inputs;
  for (const at::Tensor& one : {x, weight, bias}) {
    if (one.defined()) inputs.push_back(*storage_use(*one.unsafeGetTensorImpl()));
  }
  const std::unique_ptr<TapedOp> taped = TapedOp::capture(call, inputs, plan::RecomputeRule::BatchNorm);
  op.callBoxed(stack);
  if (taped == nullptr) return false;
  taped->note_outputs(stack);
  if (!taped->can_recompute_batch_norm()) return false;
  std::vector<StoragePtr> read;
  for (const StorageUse& input : inputs) read.push_back(input.storage);
  for (int i : {1, 2}) read.push_back(storage_use(*stack[i].toTensor().unsafeGetTensorImpl())->storage);
  const StoragePtr again = taped->recompute_batch_norm(read);
  return same_bits(stack[0].toTensor(), Geometry::of(stack[0].toTensor()).on(again));
}

bool recomputes_batch_norm() {
  // The shapes are small, because the pool may have little room. Odd sizes test the ends of vector loops.
  const std::vector<std::vector<std::int64_t>> shapes = {{3, 5, 7, 7},  {2, 33, 9, 11},  {4, 64, 5, 5},
                                                         {8, 64, 1, 1}, {2, 16, 16, 17}, {16, 24},
                                                         {5, 12, 33},   {2, 8, 3, 9, 5}};
  for (const auto& shape : shapes) {
    const at::Tensor x = numbers(shape, 3, 1);
    for (const bool affine : {false, true}) {
      if (!applies(x, affine)) return false;
      if (shape.size() == 4 && !applies(x.contiguous(at::MemoryFormat::ChannelsLast), affine)) return false;
    }
  }
  return true;
}

at::Tensor input_gradient(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, bool transposed) {
  const std::array<std::int64_t, 2> one{1, 1}, none{0, 0};
  return std::get<0>(at::convolution_backward(grad, x, weight, std::nullopt, one, one, one, transposed, none, 1,
                                              {true, false, false}));
}

// Fills the convolution's input with NaN. If the kernel looked at it, the gradient would have other bits.
bool convolution_input_unread() {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t side : {3, 4}) {
      for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const std::int64_t out = transposed ? 12 - 2 + side - 1 : 12 + 2 - side + 1;
        const at::Tensor x = numbers({2, 8, 12, 12}, 1, 0).contiguous(format);
        const at::Tensor grad = numbers({2, 8, out, out}, 1, 0).contiguous(format);
        const at::Tensor poisoned = at::full_like(x, std::numeric_limits<float>::quiet_NaN());
        for (const at::MemoryFormat of_weight : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
          const at::Tensor weight = numbers({8, 8, side, side}, 1, 0).contiguous(of_weight);
          if (!same_bits(input_gradient(grad, x, weight, transposed),
                         input_gradient(grad, poisoned, weight, transposed)))
            return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

KernelFacts probe_kernels() {
  const UnseenOps unseen;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  try {
    return {recomputes_batch_norm(), convolution_input_unread()};
  } catch (const std::exception&) {
    return {};  // no room, or an op has another schema: then no plan relies on these facts
  }
}

}  // namespace ullage::runtime
