// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives C++ programs saved-tensor hooks; checkpoint() needs them. Torch asks its default autograd engine for such
// hooks, and only Python's engine has any. This file puts an engine before the default one that gives the hooks of the
// innermost checkpoint of the thread, and passes everything else on.

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

namespace ullage::train {

// Makes the hooks of one saved tensor.
class HookMaker {
 public:
  virtual ~HookMaker() = default;
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make() = 0;
};

// Asks `maker` for the hooks of all that autograd saves on this thread, until this object is destroyed. Then the maker
// before it is asked again. Hooks that Python pushes meanwhile come first. `maker` must outlive this object, which must
// be destroyed on the thread that made it.
class SavingTo final {
 public:
  explicit SavingTo(HookMaker& maker);
  ~SavingTo();
  SavingTo(const SavingTo&) = delete;
  SavingTo& operator=(const SavingTo&) = delete;
};

}  // namespace ullage::train
