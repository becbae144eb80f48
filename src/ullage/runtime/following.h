// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts the interceptor of ops and the saved-tensor hooks in front of torch and tells everybody who listens. A program
// is followed from the beginning where it is recorded, else from when the pool nears its limit: who fits pays nothing.

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
  // `due`: is it time? Asked at each allocation, on any thread, until it says yes once. The listeners, in the order in
  // which they are told of an op's begin, must live for ever.
  Following(std::vector<OpListener*> ops, std::vector<SavedListener*> saves, std::function<bool()> due);

  // Installs the interceptor, still disabled. Without it nobody is followed; the reason is returned.
  Status install();

  // Called by the pool at each allocation: once it is time everything is enabled, and this thread is armed.
  void follow_this_thread();

  // At a step's border: stands in front again where somebody (Python, when it imports torch) did so meanwhile.
  void renew();

  // In a child by fork: nothing is followed from its next op on. Takes no lock.
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
