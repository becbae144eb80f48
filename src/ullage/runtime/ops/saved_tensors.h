// SPDX-License-Identifier: Apache-2.0
#pragma once

// What autograd saves for backward, told as it is saved, read back and let go: default saved-tensor hooks in C++, so
// that no interpreter lock is held. Hooks of the program (torch.autograd.graph.saved_tensors_hooks, checkpoint) have
// the first word. The hooks keep what torch itself would keep: the tensor's storage and its version, and torch's own
// error when it was changed in place.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/op_call.h"
#include "ullage/trace/recording/trace.h"

#include <memory>

namespace ullage::runtime {

using trace::SavedKind;

// Called on the thread that saves, unpacks or lets go; a storage saved k times is told k times. Only storages with
// bytes on the followed device are told.
class SavedListener {
 public:
  virtual ~SavedListener() = default;
  // May throw: then the op that saves fails with that exception.
  virtual void saved(const StorageUse& use, SavedKind kind) = 0;
  // Backward is about to read it. May throw (it cannot be brought back): backward fails with that exception.
  virtual void unpacking(const StorageUse& use) = 0;
  // `begin` as it was told to saved().
  virtual void released(Address begin) noexcept = 0;
};

// On as long as it lives; one at a time. Graphs may outlive it: they are unpacked as ever, and nothing is told any
// more.
class SavedTensorHooks final {
 public:
  // `listener` must outlive the guard and every backward in flight when it is destroyed. System: one is on already.
  static Result<std::unique_ptr<SavedTensorHooks>> install(SavedListener& listener);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

  // Takes the first place again after somebody put in an engine of his own: Python does when it imports torch. Cheap.
  void renew();

 private:
  SavedTensorHooks() = default;
};

}  // namespace ullage::runtime
