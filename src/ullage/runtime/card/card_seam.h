// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between the runtime and torch's CUDA part. An allocator of ours stands before PyTorch's own for the card
// (cuda_allocator.cpp, in a library of its own that is only loaded where libc10_cuda is): the card's larger bytes it
// asks of the runtime, all else of PyTorch's, which may hold what the budget leaves it.

#include "ullage/base/bytes.h"
#include "ullage/store/store.h"

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace ullage::runtime {

// The runtime's part of a card's memory. Any thread, no lock held.
class CardMemory {
 public:
  virtual ~CardMemory() = default;
  // The number of the card that the budget is of; others are not asked about.
  virtual int card() const = 0;
  // Smaller requests are PyTorch's.
  virtual Bytes least() const = 0;
  // Asked before every allocation there: may the calls below be made? The first that asks begins the budget. False
  // while that is under way.
  virtual bool ready() = 0;

  // From pager and store. Throws c10::OutOfMemoryError where the budget has no room.
  virtual c10::DataPtr allocate(Bytes size) = 0;
  // Does this block come from there?
  virtual bool owns(const void* at) const = 0;
  // It is used on this stream too.
  virtual void used(const void* at, const c10::Stream& on) = 0;
  // PyTorch's allocator has made a block for a tensor, and is about to take it back.
  virtual void theirs_made(const void* at, Bytes size) = 0;
  virtual void theirs_goes(const void* at) = 0;
  // PyTorch's allocator could not have `size` more: makes room, and lets it hold more (CardAllocator::allow). False:
  // there is none to be made.
  virtual bool give_way(Bytes size) = 0;
  // Work is captured from now on, or all that was is (CUDA graphs): told before its first op, after its last.
  virtual void captures(bool begin) = 0;
  // Gives back what no tensor holds (torch.cuda.empty_cache).
  virtual void drop_idle() = 0;
  virtual store::StoreCounts counts() const = 0;
};

// PyTorch's own allocator of the card, as the runtime sees it.
class CardAllocator {
 public:
  virtual ~CardAllocator() = default;
  // What it holds from the driver, used or not.
  virtual Bytes reserved() = 0;
  // It holds no more than this from now on; a request beyond is tried again after give_way().
  virtual void allow(Bytes most) = 0;
  virtual void drop_cache() = 0;
};

// What a library that puts an allocator before PyTorch's exports, by this name, to be called once. Null: it cannot.
// `memory` must live for ever.
using PutBefore = CardAllocator* (*)(CardMemory& memory);
inline constexpr const char* kPutBefore = "ullage_put_before_cuda";

}  // namespace ullage::runtime
