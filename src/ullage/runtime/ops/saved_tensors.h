// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls a listener for each storage that autograd saves for backward, unpacks and releases. Torch asks its default
// engine for saved-tensor hooks. This file installs an engine that returns C++ hooks, so that no interpreter lock is
// needed. It passes all other calls on to the engine that was installed before. If the program has hooks of its own on
// (torch.autograd.graph.saved_tensors_hooks, checkpoint), those are used instead. While torch traces, or a dispatch
// mode of Python is on, saves are not seen. Like torch itself, the hooks keep the tensor's storage and its version, and
// throw torch's own error if it was changed in place.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/op_call.h"
#include "ullage/trace/recording/trace.h"

#include <memory>

namespace ullage::runtime {

using trace::SavedKind;

// Called on the thread that saves, unpacks or releases, for storages with bytes on the followed device only. A storage
// that is saved k times is also released k times.
class SavedListener {
 public:
  virtual ~SavedListener() = default;
  // May throw: then the op that saves fails with that exception.
  virtual void saved(const StorageUse& use, SavedKind kind) = 0;
  // Backward is about to read the storage. May throw if it cannot be brought back; then backward fails with that
  // exception.
  virtual void unpacking(const StorageUse& use) = 0;
  // `begin` is the address that saved() got.
  virtual void released(Address begin) noexcept = 0;
};

// Installed for as long as the object lives; only one at a time. Graphs may outlive it: they are unpacked as usual, but
// the listener is not called any more.
class SavedTensorHooks final {
 public:
  // `listener` must outlive this object and every backward in flight when it is destroyed. System: hooks are installed
  // already.
  static Result<std::unique_ptr<SavedTensorHooks>> install(SavedListener& listener);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

  // Installs the engine again if another default engine was set since; importing torch in Python sets one. Cheap.
  void renew();

 private:
  SavedTensorHooks() = default;
};

}  // namespace ullage::runtime
