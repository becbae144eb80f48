// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives C++ programs saved-tensor hooks; checkpoint() needs them. Torch asks its default autograd engine for such
// hooks, and only Python's engine has any. This file makes an engine of its own the default one. That engine gives the
// hooks of the thread's innermost checkpoint, and passes everything else on to the engine that was the default before.

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

namespace ullage::train {

// Makes the hooks of one saved tensor.
class HookMaker {
 public:
  virtual ~HookMaker() = default;
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;
};

// Asks `maker` for the hooks of each tensor that autograd saves on this thread, until this object is destroyed. Then
// the maker before it is asked again. Hooks that Python pushes meanwhile come first. While torch traces, no maker is
// asked. `maker` must outlive this object, which must be destroyed on the thread that made it.
class SavingTo final {
 public:
  explicit SavingTo(HookMaker& maker);
  ~SavingTo();
  SavingTo(const SavingTo&) = delete;
  SavingTo& operator=(const SavingTo&) = delete;
};

}  // namespace ullage::train
