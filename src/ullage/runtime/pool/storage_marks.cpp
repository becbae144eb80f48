// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/storage_marks.h"

#include <c10/core/RefcountedDeleter.h>

#include <utility>

namespace ullage::runtime {
namespace {

[[maybe_unused]] constexpr const char* kAway =
    "the bytes of this tensor were moved off the card, to stay within the budget of 'ullage run'. Ops of torch bring "
    "them back; a pointer to them is valid only inside an op (such as a custom op of torch.library), or where the "
    "budget has room";

void mark([[maybe_unused]] c10::StorageImpl& storage, [[maybe_unused]] StorageMarks::Moved what) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
  if (what == StorageMarks::Moved::Away) {
    storage.release_data_and_set_meta_custom_data_ptr_error_msg_(kAway);  // despite its name it releases nothing
  } else {
    storage.clear_data_ptr_access_error_msg_();
  }
#endif
}

}  // namespace

Address place_of_storage(const void* storage) {
  auto* const one = static_cast<c10::StorageImpl*>(const_cast<void*>(storage));
  return {reinterpret_cast<std::uint64_t>(one->_mutable_data_ptr_no_checks().get())};
}

bool is_shared_alias(const void* first, const void* second) {
  const auto bytes_of = [](const void* storage) -> const c10::DataPtr& {
    return static_cast<const c10::Storage*>(storage)->unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  };
  const c10::DataPtr& one = bytes_of(first);
  const c10::DataPtr& other = bytes_of(second);
  const bool are_shared = one.get_deleter() == &c10::refcounted_deleter && other.get_deleter() == one.get_deleter();
  return are_shared && one.get_context() == other.get_context();
}

void StorageMarks::moved(Address at, Moved what) {
  const std::lock_guard lock(noting_);
  moves_.push_back({at, what});
  any_.store(true, std::memory_order_release);
}

void StorageMarks::meet(std::span<const StorageUse> uses, bool in_collective) {
  const std::lock_guard lock(marking_);
  for (const StorageUse& use : uses) {
    auto known = known_.find(use.begin.value);
    if (known == known_.end()) {
      const c10::weak_intrusive_ptr<c10::StorageImpl> storage(use.storage);
      known = known_.emplace(use.begin.value, Known{storage}).first;
    }
    known->second.is_exempt = known->second.is_exempt || in_collective;
  }
}

void StorageMarks::update() {
  if (!any_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(marking_);
  std::deque<Move> moves;
  {
    const std::lock_guard noting(noting_);
    moves.swap(moves_);
  }
  for (const Move& one : moves) {
    const auto found = known_.find(one.at.value);
    if (found == known_.end() || (found->second.is_exempt && one.what == Moved::Away)) continue;
    // A strong reference may need the interpreter's lock, whose holder may wait for this one in forget(). None is
    // needed: whoever frees the storage comes through forget() first.
    mark(*found->second.storage._unsafe_get_target(), one.what);
  }
  // Only now: a thread that finds any_ unset goes on to its kernel, so every mark must be set or cleared by then.
  const std::lock_guard noting(noting_);
  any_.store(!moves_.empty(), std::memory_order_release);
}

void StorageMarks::forget(Address at) {
  const std::lock_guard lock(marking_);
  known_.erase(at.value);
  const std::lock_guard noting(noting_);
  std::erase_if(moves_, [at](const Move& one) { return one.at == at; });  // the next storage there did not move
}

}  // namespace ullage::runtime
