// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/following.h"

#include "ullage/runtime/python/python_process.h"

#include <utility>

namespace ullage::runtime {

Following::Following(std::vector<OpListener*> ops, std::vector<SavedListener*> saves, std::function<bool()> due)
    : ops_(std::move(ops)), saves_(std::move(saves)), due_(std::move(due)) {}

Status Following::install() {
  ULLAGE_TRY_VALUE(interceptor_, Interceptor::install(ops_));
  return success();
}

void Following::enable() {
  if (auto hooks = SavedTensorHooks::install(*this)) hooks_ = std::move(*hooks);
  interceptor_->enable();
  enabled_.store(true);
}

void Following::follow_this_thread() {
  if (interceptor_ == nullptr) return;
  if (!enabled_.load(std::memory_order_acquire)) {
    if (!due_()) return;
    std::call_once(enabled_once_, [this] { enable(); });
  }
  Interceptor::arm_this_thread();
}

void Following::renew() {
  if (!enabled_.load(std::memory_order_acquire)) return;
  prepare_python_later();
  if (hooks_ != nullptr) hooks_->renew();
}

void Following::leave_to_parent() {
  enabled_.store(false);
  if (interceptor_ != nullptr) interceptor_->disable();
}

void Following::saved(const StorageUse& use, SavedKind kind) {
  for (SavedListener* one : saves_) one->saved(use, kind);
}

void Following::unpacking(const StorageUse& use) {
  for (SavedListener* one : saves_) one->unpacking(use);
}

void Following::released(Address begin) noexcept {
  for (SavedListener* one : saves_) one->released(begin);
}

}  // namespace ullage::runtime
