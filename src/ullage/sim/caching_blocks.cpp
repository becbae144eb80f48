// SPDX-License-Identifier: Apache-2.0
// The list of blocks of the caching allocator. This file makes and merges blocks and keeps the lists of free ones. It
// also fills an allocator with the segments that were there before a recording's first event (seed()). Edit it if
// torch's allocator merges or orders blocks in another way. caching.h says what each field of a block and each figure
// counts.
#include "ullage/base/check.h"
#include "ullage/sim/caching.h"

#include <algorithm>

namespace ullage::sim {

BlockIndex CachingAllocator::make_block(const Block& block) {
  if (unused_.empty()) {
    ULLAGE_CHECK(blocks_.size() < kNone, "too many blocks");
    blocks_.push_back(block);
    return static_cast<BlockIndex>(blocks_.size() - 1);
  }
  const BlockIndex index = unused_.back();
  unused_.pop_back();
  blocks_[index] = block;
  return index;
}

void CachingAllocator::drop_block(BlockIndex index) {
  blocks_[index] = {};  // size zero marks an unused place
  unused_.push_back(index);
}

CachingAllocator::Block& CachingAllocator::live_block(BlockId id) {
  ULLAGE_CHECK(id.value < blocks_.size() && blocks_[id.value].live, "the block is not live");
  return blocks_[id.value];
}

void CachingAllocator::insert_free(BlockIndex index) {
  Block& block = blocks_[index];
  Pool& pool = pool_of(block);
  block.searches_then = pool.searches;
  pool.free[block.stream].insert({block.size, block.born, block.address, index});
}

void CachingAllocator::erase_free(BlockIndex index) {
  const Block& block = blocks_[index];
  pool_of(block).free[block.stream].erase({block.size, block.born, block.address, index});
}

// Returns whether the block is there, is not live, and waits for no stream.
bool CachingAllocator::idle(BlockIndex index) const {
  return index != kNone && !blocks_[index].live && blocks_[index].pending == 0;
}

// Merges the neighbour `other` into `into`. The caller must have taken `into` off the lists of free and unmapped
// blocks; this takes off `other`, which is gone then. Does nothing if `other` is kNone or not idle(), or if one of the
// two is mapped and the other is not.
void CachingAllocator::merge(BlockIndex into, BlockIndex other) {
  if (!idle(other) || blocks_[into].mapped != blocks_[other].mapped) return;
  if (blocks_[other].mapped) {
    erase_free(other);
  } else {
    pool_of(blocks_[other]).unmapped[blocks_[other].stream].erase(blocks_[other].address);
  }
  Block& block = blocks_[into];
  const Block& gone = blocks_[other];
  if (block.before == other) {
    block.address = gone.address;
    block.before = gone.before;
    if (block.before != kNone) blocks_[block.before].after = into;
  } else {
    block.after = gone.after;
    if (block.after != kNone) blocks_[block.after].before = into;
  }
  block.size += gone.size;
  drop_block(other);
}

// Returns the value of Block::born, the order among free blocks of equal size (Ties). It is for a new segment if
// `parent` is null, else for a block that is split off `parent`.
std::uint64_t CachingAllocator::number(const Block* parent) {
  if (settings_.ties == Ties::LowestAddress) return 0;
  if (settings_.ties == Ties::OldestSegment && parent) return parent->born;
  return ++numbers_;
}

void CachingAllocator::grow_reserved(Bytes bytes) {
  stats_.reserved += bytes;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
  ++stats_.segments_taken;
}

void CachingAllocator::tell(AllocatorEvent::Action action, Address at, Bytes bytes, std::uint32_t stream) {
  if (listener_) listener_->heard({action, at, bytes, streams_[stream].id, Bytes{}});
}

std::vector<BlockId> CachingAllocator::seed(const SeedSegment& segment) {
  const std::uint32_t stream = stream_index(segment.stream);
  Block next{.address = segment.address, .stream = stream, .small = segment.small, .mapped = true};
  next.born = number(nullptr);
  if (segment.expandable) next.range = add_range(segment);
  std::vector<BlockId> live;
  for (const SeedPiece& piece : segment.pieces) {
    next.size = piece.size;
    next.requested = piece.requested;
    next.live = piece.state == SeedPiece::State::Live;
    next.mapped = piece.state != SeedPiece::State::Unmapped;
    if (next.before != kNone) next.born = number(&next);
    const BlockIndex index = make_block(next);
    if (next.before != kNone) blocks_[next.before].after = index;
    if (!next.mapped) pool_of(next).unmapped[stream].emplace(next.address, index);
    if (next.mapped) stats_.reserved += piece.size;
    if (next.mapped && !next.live) insert_free(index);
    if (next.live) {
      stats_.allocated += piece.size;
      live.push_back(BlockId{index});
    }
    next.before = index;
    next.address = next.address + piece.size;
  }
  stats_.segments += segment.expandable ? 0 : 1;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
  return live;
}

std::uint32_t CachingAllocator::add_range(const SeedSegment& segment) {
  Bytes size;
  for (const SeedPiece& piece : segment.pieces) size += piece.size;
  ranges_.push_back({segment.address, size, page_of(segment.small)});
  return static_cast<std::uint32_t>(ranges_.size() - 1);
}

std::vector<CachingAllocator::BlockView> CachingAllocator::blocks() const {
  std::vector<BlockView> views;
  for (const Block& block : blocks_) {
    if (block.size.count == 0 || !block.mapped) continue;
    BlockView view{block.address, block.size, {}, streams_[block.stream].id};
    view.live = block.live;
    view.pending = block.pending > 0;
    if (view.live || view.pending) view.requested = block.requested;
    view.first_of_segment = block.before == kNone || !blocks_[block.before].mapped;
    view.small = block.small;
    view.expandable = block.range != kNone;
    views.push_back(view);
  }
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return views;
}

}  // namespace ullage::sim
