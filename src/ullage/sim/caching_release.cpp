// SPDX-License-Identifier: Apache-2.0
// Gives free segments of the caching allocator back to the device: to make room for a request, by garbage collection,
// and in empty_cache().
#include "ullage/base/check.h"
#include "ullage/sim/caching.h"

#include <algorithm>
#include <cmath>

namespace ullage::sim {

// Gives a free block that is a whole segment back to the device.
void CachingAllocator::release(BlockIndex index) {
  const Block block = blocks_[index];
  tell(AllocatorEvent::Action::SegmentFreed, block.address, block.size, block.stream);
  device_.free(block.address, block.size);
  stats_.reserved -= block.size;
  --stats_.segments;
  erase_free(index);
  drop_block(index);
}

// If max_split_size is set, free blocks of that size or more are never split, so a much smaller request cannot use one.
// Gives back the smallest of them that holds the request. If there is none, gives back the largest ones until they add
// up to the request, or to max_split_size if that is more. Returns false if all of them are too few; they are given
// back then too.
bool CachingAllocator::release_oversize(Pool& pool, Bytes size, std::uint32_t stream) {
  if (!settings_.max_split) return false;
  const Bytes cap = *settings_.max_split;
  const Bytes wanted = std::max(size, cap);
  const FreeBlocks& free = pool.free[stream];
  const auto whole = [&](FreeBlocks::Cursor at) {
    const Block& block = blocks_[free.at(at).block];
    return block.range == kNone && !block.split();  // of blocks of this size, only a seeded one can be split
  };
  const FreeBlocks::Cursor fit = free.first_from(wanted);
  if (fit && whole(fit)) {
    release(free.at(fit).block);
    return true;
  }
  std::vector<BlockIndex> chosen;
  Bytes released;
  for (auto at = free.before(fit); at && released < wanted && free.at(at).size >= cap; at = free.before(at)) {
    if (!whole(at)) continue;
    released += free.at(at).size;
    chosen.push_back(free.at(at).block);
  }
  for (const BlockIndex index : chosen) release(index);
  return released >= wanted;
}

// Waits for all pending frees, then gives back the free whole segments of all streams, and the free whole pages of
// expandable segments.
void CachingAllocator::release_all() {
  std::vector<BlockIndex> done;
  pending_.wait(done);
  for (const BlockIndex index : done) finish(index);
  for (Pool& pool : pools_) {
    std::vector<BlockIndex> expandable;
    for (const std::uint32_t stream : by_handle_) {
      for (const FreeBlocks::Entry& entry : pool.free[stream].all()) {
        if (blocks_[entry.block].range != kNone) {
          expandable.push_back(entry.block);
        } else if (!blocks_[entry.block].split()) {
          release(entry.block);
        }
      }
    }
    for (const BlockIndex index : expandable) unmap(index);
  }
}

// The threshold is a share of the limit. If more is reserved, gives back whole free segments of the large pool, in
// rounds, until the excess is gone. Each round gives back the segments of at least average age. A segment's age is the
// number of searches in the pool since it became free.
void CachingAllocator::collect_garbage() {
  const double threshold = settings_.garbage_collection_threshold * static_cast<double>(limit_->count);
  const Bytes most{static_cast<std::uint64_t>(threshold)};
  if (stats_.reserved <= most) return;
  const Bytes target = stats_.reserved - most;
  const Pool& pool = pools_[0];
  const auto age = [&](BlockIndex index) { return pool.searches - blocks_[index].searches_then; };
  const auto whole = [&] {
    std::vector<BlockIndex> found;
    for (const std::uint32_t stream : by_handle_)
      for (const FreeBlocks::Entry& entry : pool.free[stream].all())
        if (!blocks_[entry.block].split()) found.push_back(entry.block);
    return found;
  };
  double ages = 0;
  std::size_t count = 0;
  for (const BlockIndex index : whole()) {
    ages += static_cast<double>(age(index));
    ++count;
  }
  Bytes reclaimed;
  for (bool freed = true; freed && reclaimed < target && count > 0;) {
    const double mean = ages / static_cast<double>(count);
    freed = false;
    for (const BlockIndex index : whole()) {
      if (blocks_[index].range != kNone || static_cast<double>(age(index)) < mean) continue;
      freed = true;
      reclaimed += blocks_[index].size;
      ages -= static_cast<double>(age(index));
      --count;
      release(index);
    }
  }
}

}  // namespace ullage::sim
