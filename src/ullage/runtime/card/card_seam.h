// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the interface between the runtime and torch's CUDA part. Ullage's allocator takes the place of PyTorch's own
// for the card. It passes larger requests to the runtime and all others to PyTorch's allocator, which may hold what the
// budget leaves. It is in cuda_allocator.cpp, in a library of its own that is only loaded where libc10_cuda is.

#include "ullage/base/bytes.h"
#include "ullage/store/store.h"

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace ullage::runtime {

// The part of a card's memory that the runtime manages. Any thread may call, with no lock held.
class CardMemory {
 public:
  virtual ~CardMemory() = default;
  // The number of the card that the budget limits. The calls below are for this card only.
  virtual int card() const = 0;
  // Smaller requests go to PyTorch's allocator.
  virtual Bytes least() const = 0;
  // May the calls below be made? Called before every allocation on the card. The first call begins the budget; calls of
  // other threads return false until it has begun.
  virtual bool ready() = 0;

  // Allocates from the pool. Throws c10::OutOfMemoryError if the budget has no room.
  virtual c10::DataPtr allocate(Bytes size) = 0;
  // Was this block made by allocate()?
  virtual bool owns(const void* at) const = 0;
  // A block of allocate() is used on this stream too.
  virtual void used(const void* at, const c10::Stream& on) = 0;
  // PyTorch's allocator has made a block for a tensor, or is about to take one back.
  virtual void theirs_made(const void* at, Bytes size) = 0;
  virtual void theirs_goes(const void* at) = 0;
  // PyTorch's allocator has no room for `size` bytes. Makes room and raises that allocator's limit
  // (CardAllocator::allow). False: no room can be made.
  virtual bool give_way(Bytes size) = 0;
  // A capture of work (CUDA graphs), or the use of another private pool, begins or has ended. Called before its first
  // op and after its last.
  virtual void captures(bool begin) = 0;
  // Gives back the pages that no tensor holds (torch.cuda.empty_cache).
  virtual void drop_idle() = 0;
  virtual store::StoreCounts counts() const = 0;
};

// PyTorch's own allocator of the card, as the runtime sees it.
class CardAllocator {
 public:
  virtual ~CardAllocator() = default;
  // Bytes that it holds from the driver, used or not.
  virtual Bytes reserved() = 0;
  // Limits what it holds to `most` bytes. A request that needs more is tried again after give_way().
  virtual void allow(Bytes most) = 0;
  virtual void drop_cache() = 0;
};

// The function that libullage_cuda.so exports under the name kPutBefore: puts its allocator before PyTorch's. Call it
// once; `memory` must live for ever. Returns null if the library was built without CUDA.
using PutBefore = CardAllocator* (*)(CardMemory& memory);
inline constexpr const char* kPutBefore = "ullage_put_before_cuda";

}  // namespace ullage::runtime
