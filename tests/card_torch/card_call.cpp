// SPDX-License-Identifier: Apache-2.0
#include "card_call.h"

#include "card_draws.h"
#include "card_parts.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace card_torch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;

bool on_card(const at::Tensor& tensor) { return tensor.defined() && tensor.is_cuda(); }

// These keys say how to read the bytes (conjugate, negative, zero), so the lent tensor keeps them.
const DispatchKeySet kOfBytes({DispatchKey::Conjugate, DispatchKey::Negative, DispatchKey::ZeroTensor});

DispatchKeySet cpu_keys_of(const at::Tensor& card) {
  return DispatchKeySet(DispatchKey::CPU) | (card.key_set() & kOfBytes);
}

bool same_geometry(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.storage_offset() == b.storage_offset();
}

const void* first_byte(const at::Tensor& tensor) {
  const auto offset = static_cast<std::size_t>(tensor.storage_offset()) * tensor.dtype().itemsize();
  return static_cast<const char*>(tensor.storage().data()) + offset;
}

}  // namespace

at::Tensor new_on_card(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::DeviceType::CUDA),
                                           DispatchKeySet(DispatchKey::CUDA), type);
}

void give_memory(c10::StorageImpl& storage, std::size_t bytes, const void* from, std::size_t held) {
  c10::DataPtr memory = c10::GetAllocator(c10::DeviceType::CUDA)->allocate(bytes);
  if (const std::size_t kept = std::min(bytes, held); kept != 0) std::memcpy(memory.get(), from, kept);
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

// ---- lending

const Loan::LentStorage& Loan::lend_storage(const at::Tensor& of) {
  const c10::Storage& card = of.storage();
  const c10::StorageImpl* const key = card.unsafeGetStorageImpl();
  const auto [found, added] = by_card_storage_.try_emplace(key, storages_.size());
  if (!added) return storages_[found->second];
  // Resizable: if a kernel needs more bytes, it gets them from the CPU's allocator, and carry_over() copies them to
  // the card.
  const std::size_t size = card.nbytes();
  void* const bytes = const_cast<void*>(card.data());
  c10::Storage cpu = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size,
                                                           c10::DataPtr(bytes, c10::Device(c10::kCPU)),
                                                           c10::GetCPUAllocator(), /*resizable=*/true);
  by_cpu_storage_.emplace(cpu.unsafeGetStorageImpl(), storages_.size());
  return storages_.emplace_back(LentStorage{card, std::move(cpu), of.key_set() - kOfBytes, bytes, size});
}

at::Tensor Loan::lend(const at::Tensor& tensor) {
  if (!on_card(tensor)) {
    if (tensor.defined() && tensor.has_storage()) of_cpu_.insert(tensor.storage().unsafeGetStorageImpl());
    return tensor;
  }
  TORCH_CHECK(tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_quantized(),
              "the stand-in card has strided tensors alone, not ", tensor.layout(), " of ", tensor.scalar_type());
  const auto [found, added] = by_card_tensor_.try_emplace(tensor.unsafeGetTensorImpl(), tensors_.size());
  if (!added) return tensors_[found->second].cpu;
  at::Tensor cpu = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(lend_storage(tensor).cpu), cpu_keys_of(tensor),
                                                            tensor.dtype());
  c10::TensorImpl& impl = *cpu.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl.set_wrapped_number(true);
  by_cpu_tensor_.emplace(&impl, tensors_.size());
  tensors_.push_back({tensor, cpu});
  return cpu;
}

// ---- what the kernel did

const Loan::LentStorage* Loan::storage_behind(const at::Tensor& cpu) const {
  const auto found = by_cpu_storage_.find(cpu.storage().unsafeGetStorageImpl());
  return found == by_cpu_storage_.end() ? nullptr : &storages_[found->second];
}

void Loan::carry_over_tensor(const LentTensor& tensor) const {
  const LentStorage* const behind = storage_behind(tensor.cpu);
  TORCH_CHECK(behind != nullptr, "an op put a tensor of the stand-in card on a storage of the CPU");
  c10::TensorImpl& card = *tensor.card.unsafeGetTensorImpl();
  if (!card.unsafe_storage().is_alias_of(behind->card)) card.set_storage_keep_dtype(c10::Storage(behind->card));
  if (!same_geometry(tensor.card, tensor.cpu))
    card.set_sizes_and_strides(tensor.cpu.sizes(), tensor.cpu.strides(), tensor.cpu.storage_offset());
}

void Loan::carry_over() {
  for (const LentStorage& storage : storages_) {
    if (storage.cpu.data() == storage.bytes && storage.cpu.nbytes() == storage.size) continue;
    give_memory(*storage.card.unsafeGetStorageImpl(), storage.cpu.nbytes(), storage.cpu.data(), storage.cpu.nbytes());
  }
  for (const LentTensor& tensor : tensors_) carry_over_tensor(tensor);
}

at::Tensor Loan::give_back(const at::Tensor& output, bool to_card) const {
  if (!output.defined() || !output.is_cpu()) return output;
  const auto lent = by_cpu_tensor_.find(output.unsafeGetTensorImpl());
  if (lent != by_cpu_tensor_.end()) return tensors_[lent->second].card;
  TORCH_CHECK(output.layout() == at::kStrided && output.has_storage(), "the stand-in card has strided tensors alone");
  at::Tensor made;
  if (const LentStorage* const behind = storage_behind(output)) {
    made = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(behind->card), behind->keys,
                                                    output.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(output.sizes(), output.strides(), output.storage_offset());
  } else if (!to_card || of_cpu_.count(output.storage().unsafeGetStorageImpl()) != 0) {
    return output;
  } else {
    made = new_on_card(output.sizes(), output.strides(), output.scalar_type());
    if (const std::size_t bytes = made.storage().nbytes(); bytes != 0)
      std::memcpy(made.storage().mutable_data(), first_byte(output), bytes);
  }
  if (output.is_conj()) made._set_conj(true);
  if (output.is_neg()) made._set_neg(true);
  if (output.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

// ---- one call

namespace {

// Returns `value` with `change` applied to each tensor in it. Lists are made anew, because the caller may still use
// its own.
template <class Change>
IValue with_tensors(const IValue& value, const Change& change) {
  if (value.isTensor()) return IValue(change(value.toTensor()));
  if (value.isTensorList()) {
    c10::List<at::Tensor> made;
    for (const at::Tensor& tensor : value.toTensorVector()) made.push_back(change(tensor));
    return IValue(std::move(made));
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> made;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
      made.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    return IValue(std::move(made));
  }
  return value;
}

struct Asked {
  std::optional<c10::Device> device;  // the device argument, if there is one
  bool draws = false;                 // an argument is a generator
};

// Fills `changed` with the arguments for the CPU's kernel. An op that has a generator argument draws, even if it was
// given none.
Asked prepare(const c10::FunctionSchema& schema, c10::ArrayRef<IValue> arguments, IValue* changed, Loan& loan) {
  Asked asked;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const IValue& value = arguments[i];
    const c10::Argument& argument = schema.arguments()[i];
    c10::TypePtr type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    TORCH_CHECK(!value.isStorage(), "the stand-in card has no kernel for an op on a storage");
    if (value.isDevice()) {
      asked.device = value.toDevice();
      changed[i] = c10::Device(c10::kCPU);
    } else if (type->kind() == c10::TypeKind::GeneratorType) {
      asked.draws = true;
      const at::Generator given = value.isNone() ? at::Generator() : value.toGenerator();
      TORCH_CHECK(!given.defined() || given.device() == kCard, "an op on ", kCard, " cannot draw from a generator of ",
                  given.device());
      changed[i] = cpu_generator_for(given);
    } else {
      changed[i] = with_tensors(value, [&](const at::Tensor& tensor) { return loan.lend(tensor); });
    }
  }
  return asked;
}

// Imitates cuBLAS: each thread allocates a workspace at its first matrix product, keeps it, and writes to it in every
// one.
void write_workspace() {
  static const char* const bytes = std::getenv("STAND_IN_CARD_WORKSPACE");
  if (bytes == nullptr) return;
  static const std::size_t size = std::strtoull(bytes, nullptr, 10);
  thread_local auto* const workspace = new c10::DataPtr(c10::GetAllocator(c10::DeviceType::CUDA)->allocate(size));
  std::memset(workspace->get(), 0xab, size);
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++counters().ops;
  const c10::FunctionSchema& schema = op.schema();
  if (schema.name() == "aten::mm" || schema.name() == "aten::addmm") write_workspace();
  // The caller's arguments stay on the stack until the op is over, so that they stay alive.
  const std::size_t count = schema.arguments().size();
  const std::size_t begin = stack->size() - count;
  torch::jit::Stack on_cpu(count);
  Loan loan;
  const Asked asked = prepare(schema, c10::ArrayRef<IValue>(stack->data() + begin, count), on_cpu.data(), loan);
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    std::optional<DefaultGeneratorLent> draws;
    if (!asked.draws && op.hasTag(at::Tag::nondeterministic_seeded)) draws.emplace();
    op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &on_cpu);
  }
  loan.carry_over();
  const bool to_card = asked.device ? asked.device->is_cuda() : true;
  for (IValue& output : on_cpu)
    output = with_tensors(output, [&](const at::Tensor& tensor) { return loan.give_back(tensor, to_card); });
  torch::jit::drop(*stack, count);
  for (IValue& output : on_cpu) stack->push_back(std::move(output));
}

}  // namespace card_torch
