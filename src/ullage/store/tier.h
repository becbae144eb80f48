// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tier is where the bytes of spilled storages go: the spill file (spill_file.h); for a card, locked host memory comes
// first (cuda/host_tier.h). Implement Tier to add another place for them.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/store/spill_space.h"

#include <functional>

namespace ullage::store {

// Lets a copy out of a storage begin only while no op can touch the storage's bytes. Needed on devices that run work
// later than it was submitted, and that notice no writes. There an op may begin between the end of the wait for earlier
// work and the begin of the copy.
class CopyGate {
 public:
  enum class Answer { Begun, WaitAgain, Never };
  virtual ~CopyGate() = default;
  // Calls `begin`, which submits the copy to the device and returns at once, unless an op got in the way. WaitAgain: an
  // op has read the bytes since the caller began to wait for the work on them. Never: the caller gives the copy up. An
  // op in flight uses the bytes, they were written to or freed, or the answer was WaitAgain too often.
  virtual Answer pass(const std::function<void()>& begin) = 0;
};

// Thread-safe.
class Tier {
 public:
  virtual ~Tier() = default;

  // Takes a slot of `size` bytes, a multiple of 4096. BadArgument: the tier's bound is reached. System: the system has
  // no more space.
  virtual Result<SpillSlot> take(Bytes size) = 0;

  // Writes the whole slot from `from`, a multiple of 4096. After an error the slot holds nothing and may be written
  // again. `sharing`: are the pages shared with a forked process? Every copy by a Bridge passes `gate` (null: there is
  // none); if the gate says Never, the result is an error.
  enum class Sharing { None, WithAFork };
  virtual Status write(const SpillSlot& slot, Address from, Sharing sharing, CopyGate* gate) = 0;

  // Reads the whole slot to `into`; nobody else may touch these bytes meanwhile. After an error they are undefined.
  virtual Status read(const SpillSlot& slot, Address into) = 0;

  // Gives the slot back, so that its space is free again. No write or read of it may be in progress.
  virtual void give(const SpillSlot& slot) = 0;

  // To be called around every fork. All other calls wait from the first of these until after the fork.
  virtual void before_fork() {}
  virtual void after_fork_in_parent() {}
  virtual void after_fork_in_child() {}
};

// Copies from and to the memory of a card, which the processor cannot reach. Thread-safe. A copy waits for all earlier
// work on these bytes, and each call returns when the bytes have arrived. copy_out() passes `gate` (null: there is
// none) between the wait and the copy. If the gate says Never, the result is an error.
class Bridge {
 public:
  virtual ~Bridge() = default;
  virtual Status copy_out(Address from, void* into, Bytes size, CopyGate* gate) = 0;
  virtual Status copy_in(const void* from, Address into, Bytes size) = 0;
};

}  // namespace ullage::store
