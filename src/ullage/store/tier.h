// SPDX-License-Identifier: Apache-2.0
#pragma once

// A place below memory, where the bytes of storages go whose pages are taken away: the spill file; for a card pinned
// memory of the host first (cuda/host_tier.h).

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/store/spill_space.h"

namespace ullage::store {

// Thread-safe.
class Tier {
 public:
  virtual ~Tier() = default;

  // Space for `size` bytes, a multiple of 4096. BadArgument: the bound is reached. System: there is no more.
  virtual Result<SpillSlot> take(Bytes size) = 0;

  // The whole slot, from bytes at a multiple of 4096. After an error it holds nothing and may be written again.
  // `sharing`: are the pages shared with a forked process?
  enum class Sharing { None, WithAFork };
  virtual Status write(const SpillSlot& slot, Address from, Sharing sharing) = 0;

  // The whole slot, or an error; then the bytes at `into` are of no use. Nobody else touches them before it returns.
  virtual Status read(const SpillSlot& slot, Address into) = 0;

  // The slot's space is free again. No write or read of this slot may be under way.
  virtual void give(const SpillSlot& slot) = 0;

  // Around every fork; between the first call and the second or third nothing else comes through.
  virtual void before_fork() {}
  virtual void after_fork_in_parent() {}
  virtual void after_fork_in_child() {}
};

// Reaches memory that the processor cannot: a card's. Thread-safe. Each call returns when the bytes are there, after
// all that the device had been given to do before.
class Bridge {
 public:
  virtual ~Bridge() = default;
  virtual Status copy_out(Address from, void* into, Bytes size) = 0;
  virtual Status copy_in(const void* from, Address into, Bytes size) = 0;
};

}  // namespace ullage::store
