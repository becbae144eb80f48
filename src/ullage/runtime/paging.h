// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins torch's ops and saved tensors with the pager: what an op reads is brought back and pinned, what autograd saves
// is known as such. Nobody is followed before the pool nears its limit.

#include "ullage/runtime/interceptor.h"
#include "ullage/runtime/pool.h"
#include "ullage/runtime/saved_tensors.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ullage::runtime {

class Paging final : public OpListener, public SavedListener {
 public:
  // Both must live for ever.
  Paging(store::Pager& pager, Pool& pool) : pager_(pager), pool_(pool) {}

  // Installs the interceptor, still disabled. The others behave as ever where this fails; the reason is returned.
  Status install();

  // Called by the pool at each allocation: nothing before the pool is under pressure; then everything is enabled, and
  // this thread is armed.
  void follow_this_thread();

  // At a step's border: stands in front again where somebody (Python, when it imports torch) did so meanwhile.
  void renew();

  bool fits(const OpCall& call) override;
  void begin(OpCall& call) override;
  void end(OpCall& call, std::span<const c10::IValue> outputs, bool returned) noexcept override;

  void saved(const StorageUse& use, SavedKind kind) override;
  void unpacking(const StorageUse& use) override;
  void released(Address begin) noexcept override;

 private:
  void enable();

  store::Pager& pager_;
  Pool& pool_;
  std::unique_ptr<Interceptor> interceptor_;
  std::unique_ptr<SavedTensorHooks> hooks_;
  std::once_flag enabled_once_;
  std::atomic<bool> enabled_{false};
};

}  // namespace ullage::runtime
