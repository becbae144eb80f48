// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/heap_scratch.h"

#include <ATen/Parallel.h>
#include <ATen/native/ConvUtils.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace ullage::runtime {
namespace {

// The charges of the ops in flight on this thread, innermost last.
struct Charge {
  const OpCall* call;
  HeapScratch::Scratch scratch;
};
thread_local std::vector<Charge> charges;

// Bytes of one number in the scratch: half and bfloat16 are added up in float.
std::int64_t width_of(at::ScalarType type) { return type == at::kDouble ? 8 : 4; }

// Does it have bytes on the CPU, and sizes that are plain numbers?
bool is_on_heap(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided && !tensor.is_nested() &&
         !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

Bytes of_convolution_backward(std::span<const c10::IValue> arguments) {
  const at::Tensor& output_gradient = arguments[0].toTensor();
  const at::Tensor& input = arguments[1].toTensor();
  const at::Tensor& weight = arguments[2].toTensor();
  const bool input_wanted = arguments[10].toBoolList().get(0);
  if (!input_wanted || !is_on_heap(output_gradient) || !is_on_heap(input) || !is_on_heap(weight)) return {};
  if ((input.dim() != 3 && input.dim() != 4) || output_gradient.numel() == 0 || weight.numel() == 0) return {};
  if (at::native::select_conv_backend(input, weight, {}, arguments[4].toSymIntVector(), arguments[5].toSymIntVector(),
                                      arguments[6].toSymIntVector(), arguments[7].toBool(),
                                      arguments[8].toSymIntVector(), arguments[9].toInt(),
                                      std::nullopt) != at::native::ConvBackend::Slow2d) {
    return {};
  }
  const std::int64_t threads = std::min<std::int64_t>(at::get_num_threads(), input.size(0));
  const std::int64_t copies = weight.numel() / weight.size(0);  // channels of one group times places of the kernel
  const std::int64_t pixels = output_gradient.numel() / output_gradient.size(0) / output_gradient.size(1);
  return Bytes{static_cast<std::uint64_t>(threads * copies * pixels * width_of(input.scalar_type()))};
}

}  // namespace

Bytes heap_scratch(const OpCall& call) {
  if (call.inputs.empty()) return {};  // tensors without bytes: no kernel computes anything
  return call.name == "aten::convolution_backward" ? of_convolution_backward(call.arguments) : Bytes{};
}

Bytes product_inputs(const OpCall& call) {
  static constexpr std::array<std::string_view, 4> kProducts = {"aten::addmm", "aten::mm", "aten::bmm",
                                                                "aten::baddbmm"};
  if (std::ranges::find(kProducts, call.name) == kProducts.end()) return {};
  Bytes inputs{};
  for (const StorageUse& use : call.inputs) inputs += use.size;
  return inputs;
}

void HeapScratch::begin(OpCall& call) {
  Scratch scratch{heap_scratch(call), true};
  // Charges a product only if it is more than twice as large as any product charged before. The budget's margin covers
  // what a product of up to twice that size takes on top, and what a second thread takes at the same time.
  if (const Bytes product = product_inputs(call); product.count > 2 * largest_product_.load()) {
    largest_product_.store(product.count);
    scratch = {std::min(product, kProductBuffers * static_cast<std::uint64_t>(at::get_num_threads())), false};
  }
  if (scratch.bytes == Bytes{}) return;
  charge_(scratch, std::string(call.name) + "'s scratch");
  charges.push_back({&call, scratch});
}

void HeapScratch::end(OpCall& call, std::span<const c10::IValue>, bool) noexcept {
  if (charges.empty() || charges.back().call != &call) return;
  discharge_(charges.back().scratch);
  charges.pop_back();
}

}  // namespace ullage::runtime
