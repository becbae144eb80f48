// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pending_frees.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace ullage::sim {
namespace {

constexpr std::uint64_t kGolden = 11400714819323198485ull;  // 2^64 / golden ratio
constexpr std::uint64_t kCudaDevice0 = 1ull << 56;          // kind and number of the device, above the stream's id
constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();

int log2_of(std::size_t buckets) { return std::bit_width(buckets) - 1; }

}  // namespace

std::size_t PendingFrees::wanted_slot(std::size_t queue) const {
  return ((kCudaDevice0 | queues_[queue].c10_stream) * kGolden) >> (64 - log2_of(buckets_));
}

std::size_t PendingFrees::queue_of(std::uint64_t c10_stream) {
  const auto found =
      std::find_if(queues_.begin(), queues_.end(), [&](const Queue& queue) { return queue.c10_stream == c10_stream; });
  if (found != queues_.end()) return static_cast<std::size_t>(found - queues_.begin());
  queues_.push_back({c10_stream, {}});
  return queues_.size() - 1;
}

void PendingFrees::add(std::uint64_t c10_stream, BlockIndex block) {
  const std::size_t queue = queue_of(c10_stream);
  if (queues_[queue].events.empty()) place(queue);
  queues_[queue].events.push_back({block, 0});
}

// Robin Hood probing: of two keys, the one farther from its own slot gets the place, and the other one moves on. The
// table grows if a key would end up most_steps_ slots away, or if more than half of the buckets would be used.
void PendingFrees::place(std::size_t queue) {
  if (buckets_ == 0) return grow(queue);
  std::size_t at = wanted_slot(queue);
  int distance = 0;
  for (; slots_[at].distance >= distance; ++at) ++distance;
  if (distance == most_steps_ || (slots_used_ + 1) * 2 > buckets_) return grow(queue);
  std::size_t first = kNoSlot;
  while (slots_[at].distance >= 0) {
    if (slots_[at].distance < distance) {
      std::swap(slots_[at].distance, distance);
      std::swap(slots_[at].queue, queue);
      if (first == kNoSlot) first = at;
    }
    ++at;
    if (++distance == most_steps_) {
      std::swap(slots_[first].queue, queue);
      return grow(queue);
    }
  }
  slots_[at] = {distance, queue};
  ++slots_used_;
}

void PendingFrees::grow(std::size_t queue) {
  const std::vector<Slot> old = std::move(slots_);
  buckets_ = std::max<std::size_t>(4, 2 * buckets_);
  most_steps_ = std::max(4, log2_of(buckets_));
  slots_.assign(buckets_ + static_cast<std::size_t>(most_steps_), Slot{});
  slots_used_ = 0;
  for (const Slot& slot : old)
    if (slot.distance >= 0) place(slot.queue);
  place(queue);
}

// Empties a slot. The keys right after it that are not in their own slot move back by one slot.
void PendingFrees::erase(std::size_t at) {
  slots_[at] = {};
  for (; at + 1 < slots_.size() && slots_[at + 1].distance > 0; ++at) {
    slots_[at] = {slots_[at + 1].distance - 1, slots_[at + 1].queue};
    slots_[at + 1] = {};
  }
  --slots_used_;
}

void PendingFrees::drain(bool all, std::vector<BlockIndex>& done) {
  for (std::size_t at = 0; at < slots_.size();) {
    if (slots_[at].distance < 0) {
      ++at;
      continue;
    }
    std::deque<Event>& events = queues_[slots_[at].queue].events;
    while (!events.empty() && (all || ++events.front().queries >= event_queries_)) {
      done.push_back(events.front().block);
      events.pop_front();
    }
    if (events.empty()) {
      erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace ullage::sim
