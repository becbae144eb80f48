// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings made by hand, address by address, so that a test can lay out exactly what it wants diagnosed.

#include "ullage/trace/recording/recording.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ullage::diagnose {

class RecordingMaker {
 public:
  RecordingMaker() { recording_.devices.emplace_back(); }

  // Makes a stack from {"file.py", "function"} pairs, innermost first. The line is always 7.
  trace::StackId stack(const std::vector<std::pair<std::string, std::string>>& frames) {
    std::vector<trace::FrameId> ids;
    for (const auto& [file, function] : frames) ids.push_back(recording_.stacks.add(trace::Frame{file, function, 7}));
    return recording_.stacks.add(ids);
  }
  void segment(Address address, Bytes bytes) {
    event(trace::record::SegmentAllocation{address, bytes, {}}, {});
    segments_[address] = bytes;
  }
  void release(Address address) {
    event(trace::record::SegmentFree{address, segments_.at(address), {}}, {});
    segments_.erase(address);
  }
  void allocate(Address address, Bytes bytes, trace::StackId stack = {}) {
    event(trace::record::Allocation{address, bytes, {}}, stack);
    live_[address] = {bytes, stack};
  }
  void free(Address address) {
    const Bytes bytes = live_.at(address).first;
    event(trace::record::FreeRequest{address, bytes, {}}, {});
    event(trace::record::Free{address, bytes, {}}, {});
    live_.erase(address);
  }
  // Allocates in a new segment.
  Address allocate(Bytes bytes, trace::StackId stack) {
    const Address address = next_;
    next_ = next_ + round_up(bytes, 2_MiB) + 2_MiB;
    segment(address, round_up(bytes, 2_MiB));
    allocate(address, bytes, stack);
    return address;
  }
  void fail(Bytes requested, Bytes device_free, trace::StackId stack = {}) {
    event(trace::record::OutOfMemory{requested, device_free, {}}, stack);
  }

  trace::Recording recording() const {
    trace::Recording made = recording_;
    for (const auto& [address, size] : segments_) {
      trace::Segment segment;
      segment.address = address, segment.size = size;
      Address at = address;
      const auto add = [&](Bytes bytes, Bytes requested, trace::Block::State state, trace::StackId stack) {
        if (bytes == Bytes{}) return;
        segment.blocks.push_back({at, bytes, requested, state, stack});
        at = at + bytes;
      };
      for (auto it = live_.lower_bound(address); it != live_.end() && it->first < address + size; ++it) {
        add(it->first - at, {}, trace::Block::State::Inactive, {});
        const auto& [bytes, stack] = it->second;
        add(round_up(bytes, 512_B), bytes, trace::Block::State::Active, stack);
        segment.allocated += round_up(bytes, 512_B), segment.requested += bytes;
      }
      segment.active = segment.allocated;
      add(size - (at - address), {}, trace::Block::State::Inactive, {});
      made.devices[0].segments.push_back(segment);
    }
    return made;
  }

 private:
  template <class What>
  void event(What what, trace::StackId stack) {
    recording_.devices[0].events.push_back({what, trace::Microseconds{now_++}, stack});
  }

  trace::Recording recording_;
  std::map<Address, Bytes> segments_;
  std::map<Address, std::pair<Bytes, trace::StackId>> live_;
  Address next_{0x7f0000000000};
  std::int64_t now_ = 1;
};

}  // namespace ullage::diagnose
