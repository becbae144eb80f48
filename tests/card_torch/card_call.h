// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs one op on tensors of the card with the CPU's kernel. Each argument on the card is lent to the kernel as a CPU
// tensor over the same bytes. The results belong to the card again. No pointer is kept after the call.

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace card_torch {

// The boxed kernel of every op that has no kernel of its own on the card.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Returns a tensor with new memory from the card's current allocator.
at::Tensor new_on_card(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type);
// Gives the storage new memory of `bytes` bytes and copies the first of the `held` bytes at `from` into it, as many as
// fit.
void give_memory(c10::StorageImpl& storage, std::size_t bytes, const void* from, std::size_t held);

// The tensors lent in one call.
class Loan final {
 public:
  // Returns an argument for the CPU's kernel: a CPU tensor for a tensor of the card, any other tensor unchanged.
  at::Tensor lend(const at::Tensor& tensor);
  // Call it after the kernel: copies to the card's tensors the geometry, and to their storages the size, that the
  // kernel changed.
  void carry_over();
  // Returns an output as a tensor of the card. If it lies in new memory, it is copied there only if `to_card`.
  at::Tensor give_back(const at::Tensor& output, bool to_card) const;

 private:
  struct LentStorage {
    c10::Storage card, cpu;
    c10::DispatchKeySet keys;  // those of a plain tensor on it; an inference tensor lacks autograd's
    const void* bytes;         // where they were, and how many, when lent
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
  std::unordered_set<const c10::StorageImpl*> of_cpu_;  // storages of CPU arguments
};

}  // namespace card_torch
