// SPDX-License-Identifier: Apache-2.0
#pragma once

// Leads a model of the caching allocator through a recording, request by request, and compares the two. The segment
// events between two requests or frees are what the real allocator asked of its device for the second of them:
//
//   segment_free segment_free segment_alloc alloc      no room on the device, or empty_cache() before: both are tried
//   segment_map alloc                                  a new page
//   segment_free free_requested                        the program called empty_cache()

#include "ullage/sim/caching.h"
#include "ullage/sim/following_device.h"
#include "ullage/sim/layout.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ullage::sim {

class Follower final {
 public:
  // `before`: the segments as they were before the first event, oldest first.
  Follower(const CachingSettings& settings, const std::vector<Layout::Segment>& before, Bytes device_total);
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Leads the model through all events. After a difference it goes on to the end, but skips frees of blocks that the
  // model does not have.
  void follow(const std::vector<trace::RecordedEvent>& events);

  // The first difference; nothing if model and recording agree.
  const std::optional<FollowingDevice::Difference>& difference() const { return device_.difference(); }
  const CachingAllocator& model() const { return *model_; }

 private:
  void follow(const trace::record::Allocation& event);
  void follow(const trace::record::FreeRequest& event);
  void follow(const trace::record::Free& event);
  void follow(const trace::record::SegmentAllocation& event) { step(FollowingDevice::Action::SegmentAllocated, event); }
  void follow(const trace::record::SegmentFree& event) { step(FollowingDevice::Action::SegmentFreed, event); }
  void follow(const trace::record::SegmentMap& event) { step(FollowingDevice::Action::SegmentMapped, event); }
  void follow(const trace::record::SegmentUnmap& event) { step(FollowingDevice::Action::SegmentUnmapped, event); }
  void follow(const trace::record::OutOfMemory& event);
  void follow(const trace::record::SnapshotTaken&) {}

  template <class Event>
  void step(FollowingDevice::Action action, const Event& event) {
    steps_.push_back({action, event.address, event.bytes, event_});
  }

  // One request as recorded. `at` is where it was placed; none if it failed.
  struct Request {
    Bytes bytes;
    StreamId stream;
    std::optional<Address> at;
  };
  std::optional<BlockId> serve(const Request& request);
  std::optional<BlockId> attempt(CachingAllocator& model, const Request& request, bool empty_first);
  std::size_t leading_gives() const;
  void empty_cache();

  FollowingDevice device_;
  std::optional<CachingAllocator> model_;               // never empty; optional only so that serve() can replace it
  std::unordered_map<std::uint64_t, BlockId> live_;     // by recorded address
  std::unordered_map<std::uint64_t, BlockId> pending_;  // by recorded address; their free was requested
  std::vector<FollowingDevice::Step> steps_;            // since the last request or free
  std::uint64_t event_ = 0;
};

}  // namespace ullage::sim
