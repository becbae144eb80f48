// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/caching.h"

#include "ullage/base/check.h"

#include <algorithm>

namespace ullage::sim {
namespace {

constexpr Bytes kRefusedFrom{1ull << 60};  // requests of this size or more are refused without a try

// The memory fraction of `total`, truncated to whole bytes as in torch. None if the fraction is 1 or more.
std::optional<Bytes> limit_of(const CachingSettings& settings, Bytes total) {
  if (settings.memory_fraction >= 1) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(settings.memory_fraction * static_cast<double>(total.count))};
}

}  // namespace

CachingAllocator::CachingAllocator(const CachingSettings& settings, Device& device, Listener* listener,
                                   unsigned event_queries)
    : settings_(settings),
      limit_(limit_of(settings, device.total())),
      device_(device),
      listener_(listener),
      pending_(event_queries) {
  pools_[1].small = true;
}

void CachingAllocator::name_stream(StreamId stream, std::uint64_t c10_id) {
  streams_[stream_index(stream)].c10_id = c10_id;
}

std::uint32_t CachingAllocator::stream_index(StreamId stream) {
  for (std::uint32_t at = 0; at < streams_.size(); ++at)
    if (streams_[at].id == stream) return at;
  const auto index = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back({stream, stream.value});
  for (Pool& pool : pools_) {
    pool.free.emplace_back();
    pool.unmapped.emplace_back();
  }
  const auto place = std::find_if(by_handle_.begin(), by_handle_.end(),
                                  [&](std::uint32_t other) { return streams_[other].id > stream; });
  by_handle_.insert(place, index);
  return index;
}

std::variant<Allocation, Shortage> CachingAllocator::allocate(Bytes requested, StreamId stream) {
  ULLAGE_CHECK(requested.count > 0, "a request of zero bytes takes no block");
  const std::uint32_t on = stream_index(stream);
  if (requested >= kRefusedFrom) return short_of(Shortage::Reason::TooLarge, requested, requested, requested);
  poll_pending();
  const Bytes size = settings_.block_for(requested);
  const Bytes segment = settings_.segment_for(size);
  Pool& pool = CachingSettings::is_small(size) ? pools_[1] : pools_[0];
  BlockIndex index = take_free(pool, size, on);
  if (index == kNone) index = take_new_or_make_room(pool, size, segment, on);
  if (index == kNone) {
    ++stats_.out_of_memory;
    if (listener_) {
      listener_->heard({AllocatorEvent::Action::OutOfMemory, Address{}, size, stream, device_.available()});
    }
    const bool over = limit_ && stats_.reserved + segment > *limit_;
    return short_of(over ? Shortage::Reason::OverLimit : Shortage::Reason::DeviceFull, requested, size, segment);
  }
  if (may_split(blocks_[index], size)) index = split_front(index, size);
  Block& block = blocks_[index];
  block.live = true;
  block.requested = requested;
  tell(AllocatorEvent::Action::Allocated, block.address, requested, on);
  stats_.allocated += block.size;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  return Allocation{BlockId{index}, block.address};
}

// Takes the best fit out of the free blocks. Returns none if no block fits or the split settings forbid the best fit.
BlockIndex CachingAllocator::take_free(Pool& pool, Bytes size, std::uint32_t stream) {
  if (collects_garbage()) ++pool.searches;
  FreeBlocks::Cursor best = pool.free[stream].first_from(size);
  if (!best) return kNone;
  best = fit_expandable(pool, best, stream);
  const FreeBlocks::Entry entry = pool.free[stream].at(best);
  if (settings_.max_split) {
    const Bytes cap = *settings_.max_split;
    const Bytes slack = settings_.max_non_split_rounding.value_or(settings_.large_segment);
    if (size < cap && entry.size >= cap) return kNone;
    if (size >= cap && entry.size >= size + slack) return kNone;
  }
  pool.free[stream].erase(entry);
  return entry.block;
}

BlockIndex CachingAllocator::take_new_or_make_room(Pool& pool, Bytes size, Bytes segment, std::uint32_t stream) {
  if (collects_garbage()) collect_garbage();
  BlockIndex index = take_new(pool, size, segment, stream);
  if (index == kNone && release_oversize(pool, size, stream)) index = take_new(pool, size, segment, stream);
  if (index != kNone) return index;
  release_all();
  ++stats_.retries;
  return take_new(pool, size, segment, stream);
}

BlockIndex CachingAllocator::take_new(Pool& pool, Bytes size, Bytes segment, std::uint32_t stream) {
  if (limit_ && stats_.reserved + segment > *limit_) return kNone;
  if (settings_.expandable_segments) return take_expandable(pool, size, stream);
  const std::optional<Address> at = device_.allocate(segment);
  if (!at) return kNone;
  const BlockIndex index = make_block({.address = *at, .size = segment, .stream = stream, .small = pool.small});
  blocks_[index].born = number(nullptr);
  grow_reserved(segment);
  ++stats_.segments;
  tell(AllocatorEvent::Action::SegmentAllocated, *at, segment, stream);
  return index;
}

bool CachingAllocator::may_split(const Block& block, Bytes size) const {
  const Bytes rest = block.size - size;
  if (block.small || settings_.expandable_segments) return rest >= CachingSettings::kUnit;
  return (!settings_.max_split || size < *settings_.max_split) && rest > CachingSettings::kSmall;
}

// Cuts the first `size` bytes off `whole` as a new block and returns that. `whole` keeps the rest and is free again.
BlockIndex CachingAllocator::split_front(BlockIndex whole, Bytes size) {
  Block front = blocks_[whole];
  front.born = number(&front);
  front.size = size;
  front.after = whole;
  const BlockIndex index = make_block(front);
  if (front.before != kNone) blocks_[front.before].after = index;
  Block& rest = blocks_[whole];
  rest.before = index;
  rest.address = rest.address + size;
  rest.size -= size;
  insert_free(whole);
  return index;
}

Shortage CachingAllocator::short_of(Shortage::Reason reason, Bytes requested, Bytes size, Bytes segment) const {
  return {reason, requested, size, segment, stats_.allocated, stats_.reserved, device_.available()};
}

void CachingAllocator::free(BlockId id) {
  Block& block = live_block(id);
  end_life(block);
  if (!block.shared) return give_back(id.value);
  block.shared = false;
  const std::vector<std::uint32_t> users = std::move(uses_.extract(id.value).mapped());
  for (const std::uint32_t user : users) {
    ++block.pending;
    pending_.add(streams_[user].c10_id, id.value);
  }
}

void CachingAllocator::end_life(Block& block) {
  block.live = false;
  stats_.allocated -= block.size;
  tell(AllocatorEvent::Action::FreeRequested, block.address, block.requested, block.stream);
}

void CachingAllocator::request_free(BlockId id) {
  Block& block = live_block(id);
  end_life(block);
  ++block.pending;
}

void CachingAllocator::complete_free(BlockId id) {
  ULLAGE_CHECK(id.value < blocks_.size() && blocks_[id.value].pending > 0, "no free of this block was asked for");
  finish(id.value);
}

void CachingAllocator::record_stream(BlockId id, StreamId stream) {
  Block& block = live_block(id);
  const std::uint32_t user = stream_index(stream);
  if (user == block.stream) return;
  std::vector<std::uint32_t>& users = uses_[id.value];
  if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
  block.shared = true;
}

void CachingAllocator::empty_cache() { release_all(); }

void CachingAllocator::poll_pending() {
  if (pending_.empty()) return;
  std::vector<BlockIndex> done;
  pending_.poll(done);
  for (const BlockIndex index : done) finish(index);
}

// Notes that one of the events that the block waits for is done. After the last one the block becomes free.
void CachingAllocator::finish(BlockIndex index) {
  if (--blocks_[index].pending == 0) give_back(index);
}

void CachingAllocator::give_back(BlockIndex index) {
  const Block& block = blocks_[index];
  tell(AllocatorEvent::Action::FreeCompleted, block.address, block.requested, block.stream);
  const BlockIndex before = block.before;
  const BlockIndex after = block.after;
  merge(index, before);
  merge(index, after);
  insert_free(index);
}

}  // namespace ullage::sim
