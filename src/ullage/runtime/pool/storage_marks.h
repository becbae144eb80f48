// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks torch's storages whose bytes are away from the card. Code that takes a pointer to such a storage without an op
// of torch (a custom kernel, DLPack) then gets an error message. Without the mark, its kernel would touch bytes that
// are away, which destroys the card's context for the whole process. Torch before 2.13 cannot take such a mark back;
// there this class does nothing.

#include "ullage/runtime/ops/torch_compat.h"

#include "ullage/runtime/ops/op_call.h"
#include "ullage/store/pager.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>

namespace ullage::runtime {

// Where the bytes of a storage stand when they are on the card, also while they are away. `storage` is the address of
// a c10::StorageImpl, as Python's storage._cdata gives it.
Address place_of_storage(const void* storage);

// Takes the place of c10::isSharedStorageAlias, which fails if one of the two c10::Storage is marked.
bool is_shared_alias(const void* first, const void* second);

// Thread-safe.
class StorageMarks final {
 public:
  using Moved = store::Pager::Settings::Moved;

  // Called by the pager, under its lock. Only notes the move; the next update() sets or clears the mark.
  void moved(Address at, Moved what);
  // Notes the storages of an op. Only storages noted here can be marked. Those of a collective are never marked from
  // then on, because torch takes their pointers later, to tell the allocator which streams use them. So a custom kernel
  // on such a tensor gets no error.
  void meet(std::span<const StorageUse> uses, bool in_collective);
  // Marks what left and unmarks what came back since the last call. Call it before a kernel looks at its inputs, with
  // no lock held.
  void update();
  // The storage at `at` is being freed.
  void forget(Address at);

 private:
  struct Move {
    Address at;
    Moved what;
  };
  std::mutex noting_;
  std::deque<Move> moves_;
  std::atomic<bool> any_{false};  // moves_ holds something, or update() has not ended

  std::mutex marking_;
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    bool is_exempt = false;
  };
  std::unordered_map<std::uint64_t, Known> known_;  // by address
};

}  // namespace ullage::runtime
