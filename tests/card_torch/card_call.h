// SPDX-License-Identifier: Apache-2.0
#pragma once

// One op on tensors of the card, run by the CPU's kernel: each argument on the card is lent to it as a tensor of the
// CPU over the same bytes, and what comes out belongs to the card again. No pointer is kept longer than the call.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace card_torch {

// The boxed kernel of every op that has no other on the card.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// New memory of the card, from the allocator that has it now.
at::Tensor new_on_card(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type);
// The storage then has so many bytes in memory of its own, the first of them as they were in `from`, of `held` bytes.
void give_memory(c10::StorageImpl& storage, std::size_t bytes, const void* from, std::size_t held);

// The tensors lent in one call.
class Loan final {
 public:
  // Of an argument: a tensor of the card as one of the CPU; any other as it is.
  at::Tensor lend(const at::Tensor& tensor);
  // After the kernel: geometry and size that it gave to what it was lent.
  void carry_over();
  // Of an output. `to_card`: a new tensor belongs there.
  at::Tensor give_back(const at::Tensor& output, bool to_card) const;

 private:
  struct LentStorage {
    c10::Storage card, cpu;
    c10::DispatchKeySet keys;  // of a plain tensor on it: those of autograd are absent on inference tensors
    const void* bytes;         // where, and how many, as they were lent
    std::size_t size;
  };
  struct LentTensor {
    at::Tensor card, cpu;
  };
  const LentStorage& lend_storage(const at::Tensor& of);
  const LentStorage* storage_behind(const at::Tensor& cpu) const;
  void carry_over_tensor(const LentTensor& tensor) const;

  std::vector<LentStorage> storages_;
  std::vector<LentTensor> tensors_;
  std::unordered_map<const c10::StorageImpl*, std::size_t> by_card_storage_, by_cpu_storage_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> by_card_tensor_, by_cpu_tensor_;
  std::unordered_set<const c10::StorageImpl*> of_cpu_;  // of arguments that were on the CPU
};

}  // namespace card_torch
