// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mixed precision for a region of a program: torch.autocast as a guard in C++. Ops inside the region run in a shorter
// type where that is known to be safe; parameters stay as they are.
//
//   torch::Tensor loss;
//   {
//     const AutocastGuard bf16(torch::kCPU, torch::kBFloat16);
//     loss = criterion(net->forward(x), y);
//   }
//   loss.backward();  // outside: backward runs each op in the type of its forward

#include "ullage/base/result.h"

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>

namespace ullage::train {

// BadArgument if `device` has no autocast, is not in this machine, or cannot cast to `dtype`; the message says what to
// give instead. `dtype`: none asks for the device's default. For a missing card, or a type that the CPU cannot cast to,
// Python only warns and goes on without autocast.
Status can_autocast(c10::DeviceType device, std::optional<c10::ScalarType> dtype = std::nullopt);

// Switches autocast of one device type on (or off) for this thread. Its destructor restores the state from before, also
// if an exception leaves the scope. Guards nest; they must be destroyed on their own thread, in reverse order. Torch
// caches casts of weights. They are dropped when the outermost guard of the thread ends, as with Python's `with`. A
// weight that is written inside a guard leaves a stale cast behind, so step the optimizer outside.
class AutocastGuard final {
 public:
  // `dtype`: float16 or bfloat16; none is the device's default (CPU: bfloat16, CUDA: float16 unless the program set
  // another). `enabled` = false, inside an outer guard: ops run in the types of their tensors. `cache_enabled`: whether
  // casts of weights are cached; none leaves it as it is. Torch caches only one cast of a weight. So if an outer guard
  // has another type, give false; else an op gets the outer guard's cast, and throws because its types differ.
  // Throws ContractError with the message of can_autocast() if it is enabled and the device cannot.
  explicit AutocastGuard(c10::DeviceType device, std::optional<c10::ScalarType> dtype = std::nullopt,
                         bool enabled = true, std::optional<bool> cache_enabled = std::nullopt);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_before_;
  c10::ScalarType dtype_before_;
  bool cache_enabled_before_;
};

}  // namespace ullage::train
