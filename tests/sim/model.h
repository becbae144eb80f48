// SPDX-License-Identifier: Apache-2.0
#pragma once

// A caching allocator on its own device. All events are kept, and the statistics are checked after each call.

#include "ullage/sim/caching.h"
#include "ullage/sim/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

namespace ullage::sim {

using Action = AllocatorEvent::Action;

class Ears final : public Listener {
 public:
  void heard(const AllocatorEvent& event) override { events.push_back(event); }

  std::vector<Bytes> sizes(Action action) const {
    std::vector<Bytes> found;
    for (const AllocatorEvent& event : events)
      if (event.action == action) found.push_back(event.bytes);
    return found;
  }
  std::vector<Address> addresses(Action action) const {
    std::vector<Address> found;
    for (const AllocatorEvent& event : events)
      if (event.action == action) found.push_back(event.address);
    return found;
  }
  std::size_t count(Action action) const { return sizes(action).size(); }

  std::vector<AllocatorEvent> events;
};

// Checks that blocks fill their segments, free neighbours are merged, and the statistics agree with the blocks.
inline void expect_sound(const CachingAllocator& allocator) {
  Bytes reserved;
  Bytes allocated;
  const std::vector<CachingAllocator::BlockView> blocks = allocator.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& block = blocks[i];
    reserved += block.size;
    if (block.live) allocated += block.size;
    EXPECT_EQ(block.size.count % 512, 0u);
    if (i == 0) continue;
    const auto& below = blocks[i - 1];
    EXPECT_LE(below.address + below.size, block.address) << "two blocks overlap";
    if (block.first_of_segment) continue;
    EXPECT_EQ(below.address + below.size, block.address) << "a gap in a segment";
    const auto idle = [](const auto& view) { return !view.live && !view.pending; };
    EXPECT_FALSE(idle(below) && idle(block)) << "two free neighbours";
  }
  EXPECT_EQ(allocator.stats().reserved, reserved);
  EXPECT_EQ(allocator.stats().allocated, allocated);
  EXPECT_GE(allocator.stats().allocated_peak, allocated);
  EXPECT_GE(allocator.stats().reserved_peak, reserved);
}

class Model final {
 public:
  explicit Model(const CachingSettings& settings = {}, Bytes total = 64_GiB, Addresses addresses = Addresses::Growing,
                 unsigned event_queries = 0)
      : device(total, addresses), allocator(settings, device, &ears, event_queries) {}

  Allocation take(Bytes size, std::uint64_t stream = 0) {
    const auto outcome = allocator.allocate(size, StreamId{stream});
    expect_sound(allocator);
    if (const auto* allocation = std::get_if<Allocation>(&outcome)) return *allocation;
    ADD_FAILURE() << "no room for " << size.count << " bytes";
    return {};
  }
  Shortage fail(Bytes size, std::uint64_t stream = 0) {
    const auto outcome = allocator.allocate(size, StreamId{stream});
    expect_sound(allocator);
    if (const auto* shortage = std::get_if<Shortage>(&outcome)) return *shortage;
    ADD_FAILURE() << "there was room for " << size.count << " bytes";
    return {};
  }
  void free(const Allocation& allocation) {
    allocator.free(allocation.block);
    expect_sound(allocator);
  }
  Bytes block_size(const Allocation& allocation) const {
    for (const auto& view : allocator.blocks())
      if (view.address == allocation.address) return view.size;
    return {};
  }
  Bytes reserved() const { return allocator.stats().reserved; }

  SimulatedDevice device;
  Ears ears;
  CachingAllocator allocator;
};

}  // namespace ullage::sim
