// SPDX-License-Identifier: Apache-2.0
#pragma once

// The recording that PyTorch's caching allocator makes of itself, as a snapshot file has it. It has the segments and
// blocks at one instant, and the events before it, with addresses. Nothing is derived here; reconstruct.h makes a Trace
// from it. Source of the fields: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/stacks.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::trace {

struct StreamId {
  std::uint64_t value = 0;  // the handle as in the file; 0 is the default stream
  friend constexpr auto operator<=>(StreamId, StreamId) = default;
};

// A time since the epoch or since boot, as the file has it. Only differences are meaningful.
struct Microseconds {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Microseconds, Microseconds) = default;
};

struct Block {
  enum class State {
    Active,       // a tensor holds it
    PendingFree,  // its tensor is gone, but another stream may still use it
    Inactive,     // free, in the cache
  };
  Address address;  // from the sizes of the blocks before it if the file's layout has none
  Bytes size;       // rounded up
  Bytes requested;  // for an inactive block whatever the file has, often zero
  State state = State::Inactive;
  StackId stack;
};

struct Segment {
  Address address;
  Bytes size;
  Bytes allocated, active, requested;  // as in the file; may contradict the blocks
  StreamId stream;
  bool small = false;  // belongs to the pool for requests of up to 1 MiB
  bool expandable = false;
  std::pair<std::uint64_t, std::uint64_t> pool;  // (0, 0): the default pools
  StackId stack;
  std::vector<Block> blocks;  // by address
};

namespace record {
struct Allocation {
  Address address;
  Bytes bytes;  // requested, not rounded
  StreamId stream;
};
struct FreeRequest {  // the tensor died
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct Free {  // the block went back to the pool
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct SegmentAllocation {  // cudaMalloc
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct SegmentFree {  // cudaFree
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct SegmentMap {  // pages of an expandable segment
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct SegmentUnmap {
  Address address;
  Bytes bytes;
  StreamId stream;
};
struct OutOfMemory {
  Bytes requested;
  Bytes device_free;
  StreamId stream;
};
struct SnapshotTaken {
  Bytes reserved;
};
}  // namespace record

struct RecordedEvent {
  std::variant<record::Allocation, record::FreeRequest, record::Free, record::SegmentAllocation, record::SegmentFree,
               record::SegmentMap, record::SegmentUnmap, record::OutOfMemory, record::SnapshotTaken>
      what;
  std::optional<Microseconds> at;  // none in files of torch before 2.2
  StackId stack;
};

struct DeviceRecording {
  unsigned device = 0;
  std::vector<Segment> segments;      // by address
  std::vector<RecordedEvent> events;  // oldest first; the oldest may have been lost
};

// The begin or the end of a phase that the program or torch named ("Optimizer.step#AdamW.step").
struct Annotation {
  bool start = false;
  std::string name;
  int device = 0;
  Microseconds at;
};

// The allocator_settings of the file.
struct RecordedSettings {
  std::string text;  // PYTORCH_CUDA_ALLOC_CONF as it was set
  std::optional<Bytes> max_split;
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> roundup_power2_divisions;  // (interval in MiB, divisions)
};

// The layouts of snapshot files. docs/explain.md lists them with the versions of torch that write them.
enum class SnapshotLayout { SegmentList, A, B, C, D, X };

struct Recording {
  SnapshotLayout layout = SnapshotLayout::D;
  std::vector<DeviceRecording> devices;  // by number, without those that have neither segments nor events
  std::optional<RecordedSettings> settings;
  std::vector<Annotation> annotations;
  Stacks stacks;
  std::vector<std::string> inconsistencies;  // what contradicts itself in the file or is impossible, with numbers
  std::string torch;                         // the version as far as the keys show: "2.6 or later"; empty: unknown
};

}  // namespace ullage::trace
