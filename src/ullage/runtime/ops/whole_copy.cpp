// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/whole_copy.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/COW.h>

namespace ullage::runtime {
namespace {

// Where the tensor's storage begins, if the tensor is all of it and nothing stands between its bytes and its values.
Address whole_storage(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const Address begin = bytes_of(impl);  // zero for functorch's wrappers, which have no storage
  if (begin == Address{} || tensor.is_nested()) return {};
  const bool plain = impl.layout() == c10::kStrided && !impl.is_python_dispatch() && !tensor.is_conj() &&
                     !tensor.is_neg() && !tensor.is_quantized() && !tensor.is_inference();
  if (!plain || tensor.storage_offset() != 0 || !tensor.is_non_overlapping_and_dense()) return {};
  if (tensor.nbytes() != tensor.storage().nbytes()) return {};
  return begin;
}

// Is the memory shared with other tensors until somebody writes to it?
bool is_copy_on_write(const at::Tensor& tensor) {
  return c10::impl::cow::is_cow_data_ptr(tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks());
}

bool is_differentiated(const at::Tensor& tensor) {
  return (c10::GradMode::is_enabled() && tensor.requires_grad()) || tensor._fw_grad(/*level=*/0).defined();
}

}  // namespace

std::optional<WholeCopy> whole_copy_of(const OpCall& call) {
  if (!call.arguments[0].isTensor() || !call.arguments[1].isTensor()) return std::nullopt;
  const at::Tensor& into = call.arguments[0].toTensor();
  const at::Tensor& from = call.arguments[1].toTensor();
  if (!into.defined() || !from.defined()) return std::nullopt;
  WholeCopy copy{whole_storage(into), whole_storage(from), {}};
  if (copy.into == Address{} || copy.from == Address{} || copy.into == copy.from) return std::nullopt;
  copy.size = Bytes{into.nbytes()};
  if (into.scalar_type() != from.scalar_type()) return std::nullopt;
  if (into.sizes() != from.sizes() || into.strides() != from.strides()) return std::nullopt;
  if (is_copy_on_write(into) || is_differentiated(into) || is_differentiated(from)) return std::nullopt;
  return copy;
}

void copy_to_itself(std::span<c10::IValue> arguments) { arguments[1] = arguments[0]; }

}  // namespace ullage::runtime
