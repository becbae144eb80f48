// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings made by hand, address by address, so that a test can lay out exactly what it wants diagnosed.

#include "ullage/trace/recording/recording.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace ullage::diagnose {

class RecordingMaker {
 public:
  RecordingMaker() { recording_.devices.emplace_back(); }

  // What follows happens on this device; the first is 0.
  void use_device(unsigned device) {
    while (recording_.devices.size() <= device) {
      recording_.devices.emplace_back();
      recording_.devices.back().device = static_cast<unsigned>(recording_.devices.size() - 1);
    }
    of_[at_] = {std::move(segments_), std::move(live_)};
    at_ = device;
    std::tie(segments_, live_) = of_[at_];
  }

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
  void free(Address address, trace::StackId stack = {}) {
    const Bytes bytes = live_.at(address).first;
    event(trace::record::FreeRequest{address, bytes, {}}, stack);
    event(trace::record::Free{address, bytes, {}}, {});
    live_.erase(address);
  }
  // The recording begins here: what is live now is from before.
  void forget() { recording_.devices[at_].events.clear(); }
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
    for (const auto& [device, pool] : of_) {
      if (device != at_) add_segments(made, device, pool.first, pool.second);
    }
    add_segments(made, at_, segments_, live_);
    return made;
  }

 private:
  using Segments = std::map<Address, Bytes>;
  using Live = std::map<Address, std::pair<Bytes, trace::StackId>>;

  static void add_segments(trace::Recording& made, unsigned device, const Segments& segments, const Live& live) {
    for (const auto& [address, size] : segments) {
      trace::Segment segment;
      segment.address = address, segment.size = size;
      Address at = address;
      const auto add = [&](Bytes bytes, Bytes requested, trace::Block::State state, trace::StackId stack) {
        if (bytes == Bytes{}) return;
        segment.blocks.push_back({at, bytes, requested, state, stack});
        at = at + bytes;
      };
      for (auto it = live.lower_bound(address); it != live.end() && it->first < address + size; ++it) {
        add(it->first - at, {}, trace::Block::State::Inactive, {});
        const auto& [bytes, stack] = it->second;
        add(round_up(bytes, 512_B), bytes, trace::Block::State::Active, stack);
        segment.allocated += round_up(bytes, 512_B), segment.requested += bytes;
      }
      segment.active = segment.allocated;
      add(size - (at - address), {}, trace::Block::State::Inactive, {});
      made.devices[device].segments.push_back(segment);
    }
  }

  template <class What>
  void event(What what, trace::StackId stack) {
    recording_.devices[at_].events.push_back({what, trace::Microseconds{now_++}, stack});
  }

  trace::Recording recording_;
  unsigned at_ = 0;
  Segments segments_;  // of device at_
  Live live_;
  std::map<unsigned, std::pair<Segments, Live>> of_;  // of the other devices
  Address next_{0x7f0000000000};
  std::int64_t now_ = 1;
};

}  // namespace ullage::diagnose
