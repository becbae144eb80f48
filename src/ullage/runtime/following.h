// SPDX-License-Identifier: Apache-2.0
#pragma once

// Installs the interceptor of ops and the saved-tensor hooks in front of torch and calls all listeners. A program is
// followed from the beginning if it is recorded, or if page faults cannot restore storages on its device (a card).
// Otherwise it is followed once the pool nears its limit, so that a program that fits pays nothing.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/interceptor.h"
#include "ullage/runtime/ops/saved_tensors.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace ullage::runtime {

class Following final : public SavedListener {
 public:
  // `due` says whether following should begin. It is called at each allocation, on any thread, until it first returns
  // true. `ops` are in the order of their begin(). All listeners must live for ever.
  Following(std::vector<OpListener*> ops, std::vector<SavedListener*> saves, std::function<bool()> due);

  // Installs the interceptor, still disabled. If that fails, returns why, and no thread is ever followed.
  Status install();

  // Called by the pool at each allocation. Once `due` returned true, enables everything and arms this thread.
  void follow_this_thread();

  // Called at a step's border. Puts the hooks in front again if another engine was installed meanwhile (Python does
  // when it imports torch).
  void renew();

  // In a child made by fork: follows nothing from its next op on. Takes no lock.
  void leave_to_parent();

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse& use) override;
  void released(Address begin) noexcept override;

 private:
  void enable();

  const std::vector<OpListener*> ops_;
  const std::vector<SavedListener*> saves_;
  const std::function<bool()> due_;
  std::unique_ptr<Interceptor> interceptor_;
  std::unique_ptr<SavedTensorHooks> hooks_;
  std::once_flag enabled_once_;
  std::atomic<bool> enabled_{false};
};

}  // namespace ullage::runtime
