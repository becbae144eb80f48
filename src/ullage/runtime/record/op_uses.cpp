// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/record/op_uses.h"

#include "ullage/runtime/ops/autograd_state.h"
#include "ullage/runtime/ops/op_info.h"

#include <torch/csrc/autograd/variable.h>

namespace ullage::runtime {

using How = trace::TensorUse::How;

OpUses::OpUses(const c10::OperatorHandle& op, std::span<const c10::IValue> arguments) {
  for (const OpInfo::TensorArgument& argument : info_of(op).tensors) {
    each_tensor(arguments[argument.position], [&](const at::Tensor& tensor) {
      add(*tensor.unsafeGetTensorImpl(), argument.written ? How::Written : How::Read);
    });
  }
}

OpUses::OpUses(std::span<const c10::IValue> outputs) {
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) { add(*tensor.unsafeGetTensorImpl(), How::Output); });
  }
}

OpUses::OpUses(std::span<const StorageUse> inputs) {
  for (const StorageUse& use : inputs)
    all_.push_back({use.begin, use.written ? How::Written : How::Read, 0, false, 0, 0});
}

void OpUses::add(const c10::TensorImpl& tensor, How how) {
  One use{bytes_of(tensor),
          how,
          static_cast<std::uint8_t>(tensor.dtype().toScalarType()),
          false,
          static_cast<std::uint32_t>(sizes_.size()),
          0};
  if (use.at == Address{}) return;
  for (const c10::SymInt& size : tensor.sym_sizes_default()) sizes_.push_back(size.as_int_unchecked());
  use.count = static_cast<std::uint32_t>(sizes_.size()) - use.first;
  if (how != How::Output) {
    use.leaf = is_trained_leaf(tensor);
    if (use.leaf) add_leaf(tensor);
  }
  all_.push_back(use);
}

void OpUses::add_leaf(const c10::TensorImpl& tensor) {
  Leaf leaf{bytes_of(tensor), {}};
  // This is where an optimizer reads .grad itself. Elsewhere another thread's backward may be writing it.
  if (!in_backward() && !grad_mode()) {
    const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
    if (meta->grad_.defined()) leaf.gradient = bytes_of(*meta->grad_.unsafeGetTensorImpl());
  }
  leaves_.push_back(leaf);
}

}  // namespace ullage::runtime
