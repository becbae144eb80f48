// SPDX-License-Identifier: Apache-2.0
// Registers the card's ops: kernels of its own for new memory and for views, and the CPU's kernel for every other op
// that has one.

#include "card_call.h"
#include "card_parts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <string>
#include <string_view>
#include <utility>

namespace card_torch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

at::ScalarType type_or_default(std::optional<at::ScalarType> type) {
  return type.value_or(at::typeMetaToScalarType(at::get_default_dtype()));
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> /*device*/, std::optional<bool> /*pinned*/,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, c10::GetAllocator(c10::DeviceType::CUDA), DispatchKeySet(DispatchKey::CUDA),
                                   type_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                         std::optional<bool> /*pinned*/) {
  return new_on_card(sizes, strides, type_or_default(type));
}

// Zeros without memory behind them, which autograd makes.
at::Tensor zeros_unwritten(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                           std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                           std::optional<bool> /*pinned*/) {
  at::native::ZeroTensorAllocator none(kCard);
  return at::detail::empty_generic(sizes, &none, DispatchKeySet({DispatchKey::CUDA, DispatchKey::ZeroTensor}),
                                   type_or_default(type), std::nullopt);
}

// Grows the storage if the tensor needs more bytes than it has; never shrinks it (as ATen/native/cuda/Resize.h).
void reserve(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const auto needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.dtype().itemsize(),
                                                       static_cast<std::size_t>(tensor.storage_offset()));
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (needed <= storage.nbytes()) return;
  TORCH_CHECK(storage.resizable(), "a storage of the card that may not be resized has ", storage.nbytes(),
              " bytes, needed are ", needed);
  give_memory(storage, needed, storage.data(), storage.nbytes());
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  if (self.sizes() != sizes) impl.set_sizes_contiguous(sizes);
  if (format) impl.empty_tensor_restride(*format);
  reserve(self);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset, at::IntArrayRef sizes,
                        at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  if (strides.data() != nullptr) {
    impl.set_sizes_and_strides(sizes, strides);
  } else {
    impl.set_sizes_contiguous(sizes);
  }
  reserve(self);
  return self;
}

at::Tensor& set_nothing(at::Tensor& self) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                       c10::GetAllocator(c10::DeviceType::CUDA), /*resizable=*/true);
  return set_storage(self, std::move(storage), 0, {0}, {});
}

void record_stream(at::Tensor& /*self*/, at::Stream /*stream*/) { ++counters().streams_recorded; }

// Torch asks whether to use the library's CTC loss; the answer is no.
bool not_taken(const at::Tensor& /*rows*/, const at::Tensor& /*targets*/, at::IntArrayRef /*input_lengths*/,
               at::IntArrayRef /*target_lengths*/, std::int64_t /*blank*/) {
  return false;
}
bool not_taken_by_tensors(const at::Tensor& /*rows*/, const at::Tensor& /*targets*/,
                          const at::Tensor& /*input_lengths*/, const at::Tensor& /*target_lengths*/,
                          std::int64_t /*blank*/) {
  return false;
}

// These ops consist of other ops on every device, but on a card they end in kernels or choices that the CPU lacks.
bool whole_on_cpu(std::string_view name) {
  return name == "aten::copy_" || name == "aten::convolution" || name == "aten::convolution_backward" ||
         name.starts_with("aten::_foreach_");
}

// Registers every op for which the CPU has a kernel. The kernel goes before the op's decomposition, so that the bits
// are the CPU's.
void register_cpu_kernels() {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto kernel = [] { return c10::KernelFunction::makeFromBoxedFunction<&run_on_cpu>(); };
  const auto keep = [](c10::RegistrationHandleRAII handle) { new c10::RegistrationHandleRAII(std::move(handle)); };
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(DispatchKey::CUDA)) continue;
    if (!op->hasKernelForDispatchKey(DispatchKey::CPU) && !whole_on_cpu(name.name)) continue;
    keep(dispatcher.registerImpl(name, DispatchKey::CUDA, kernel(), std::nullopt, nullptr, "the stand-in card"));
  }
  keep(dispatcher.registerFallback(DispatchKey::CUDA, kernel(), "the stand-in card"));
}

}  // namespace

void register_kernels() {
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__);
  aten->impl("empty.memory_format", TORCH_FN(empty));
  aten->impl("empty_strided", TORCH_FN(empty_strided));
  aten->impl("_efficientzerotensor", TORCH_FN(zeros_unwritten));
  aten->impl("resize_", TORCH_FN(resize_));
  aten->impl("set_", TORCH_FN(set_nothing));
  aten->impl("set_.source_Storage", TORCH_FN(at::native::set_));
  aten->impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  aten->impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  aten->impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten->impl("view", TORCH_FN(at::native::view));
  aten->impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  aten->impl("unfold", TORCH_FN(at::native::unfold));
  aten->impl("record_stream", TORCH_FN(record_stream));
  for (const char* const name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    aten->impl(name, TORCH_FN(not_taken));
    aten->impl((std::string(name) + ".Tensor").c_str(), TORCH_FN(not_taken_by_tensors));
  }
  register_cpu_kernels();
}

}  // namespace card_torch
