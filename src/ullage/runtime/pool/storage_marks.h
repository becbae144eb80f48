// SPDX-License-Identifier: Apache-2.0
#pragma once

// Says of torch's storages whose bytes are away from the card that they are, so that who takes a pointer to one without
// an op of torch (a kernel of one's own, DLPack) gets an error in words. Nothing else would: a kernel that touches what
// is away ends the card's context, for the whole process. Torch before 2.13 takes no such mark back: there this does
// nothing.

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

// Thread-safe.
class StorageMarks final {
 public:
  using Moved = store::Pager::Settings::Moved;

  // By the pager, under its lock: only noted. What it is about is done by the next update().
  void moved(Address at, Moved what);
  // Storages of the pool, as an op has them: only what was met is marked.
  void meet(std::span<const StorageUse> uses);
  // Marks what left and unmarks what came back since; before a kernel looks at its inputs. No lock held.
  void update();
  // It is being freed.
  void forget(Address at);

 private:
  struct Told {
    Address at;
    Moved what;
  };
  std::mutex noting_;
  std::deque<Told> told_;
  std::atomic<bool> any_{false};  // told

  std::mutex marking_;
  std::unordered_map<std::uint64_t, c10::weak_intrusive_ptr<c10::StorageImpl>> known_;  // by address
};

}  // namespace ullage::runtime
