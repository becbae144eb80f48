// SPDX-License-Identifier: Apache-2.0
#pragma once

// The events that a model of an allocator reports while it works. They are the events of torch's own allocator trace
// with the same fields, so that the two can be compared one by one.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>

namespace ullage::sim {

struct AllocatorEvent {
  enum class Action : std::uint8_t {
    Allocated,         // alloc: bytes as requested
    FreeRequested,     // free_requested: bytes as requested
    FreeCompleted,     // free_completed: bytes as requested
    SegmentAllocated,  // segment_alloc
    SegmentFreed,      // segment_free
    SegmentMapped,     // segment_map: pages of an expandable segment
    SegmentUnmapped,   // segment_unmap
    OutOfMemory,       // oom: bytes rounded up; no address
  };
  Action action = Action::Allocated;
  Address address;
  Bytes bytes;
  trace::StreamId stream;
  Bytes device_free;  // OutOfMemory only: what the device had left

  friend constexpr bool operator==(const AllocatorEvent&, const AllocatorEvent&) = default;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void heard(const AllocatorEvent& event) = 0;
};

}  // namespace ullage::sim
