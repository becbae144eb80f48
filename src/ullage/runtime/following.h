// SPDX-License-Identifier: Apache-2.0
#pragma once

// Follows a program: intercepts its ops and the tensors that autograd saves, and passes both on to all listeners
// (pager, recorder, the follower of a plan). A program is followed from the beginning if it is recorded, if
// its bf16 ops are counted from the first one on, or if it begins with a plan from a file. On a device where page
// faults cannot restore storages (a card), every program is. Otherwise it is followed once the pool nears its limit or
// much of it is shared by a fork, so that any other program that fits pays nothing. The constructor's `due` decides.

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
  // `due` says whether following should begin. It is called at each allocation until it first returns true; several
  // threads may call it at once. When an op begins, the begin() of each of `ops` is called in this order; end() is
  // called in the reverse order. All listeners must live for ever.
  Following(std::vector<OpListener*> ops, std::vector<SavedListener*> saves, std::function<bool()> due);

  // Installs the interceptor, still disabled. If that fails, returns why, and no thread is ever followed.
  Status install();

  // Called by the pool at each allocation. Once `due` returned true, enables the interceptor and the hooks, and makes
  // the interceptor cover this thread. A thread that allocates nothing from then on is not covered.
  void follow_this_thread();

  // Called when the program reports that a step ended. Torch asks its default autograd engine for saved-tensor hooks,
  // so the hooks work by standing in for that engine. If another engine was made the default meanwhile (Python does
  // that when it imports torch), puts the hooks before that one.
  void renew();

  // Call it in a child made by fork. The child's ops from now on are not seen by the listeners. Takes no lock.
  void leave_to_parent();

  // Pass each call on to all of `saves`.
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
