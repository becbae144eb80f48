// SPDX-License-Identifier: Apache-2.0
#pragma once

// The segments of an allocator and what stands in them, as they were before the first event of a recording: worked out
// from the segments at the end by taking back the events, newest first.
//
//   at the end     |####|##|------|     blocks as the file tells them
//   undo alloc     |####|---------|     a block becomes free and merges with free neighbours
//   undo free      |####|---|##|--|     a block is cut out of a free one; its size is the request, rounded up
//
// What rounding does not tell, the size of a block that took a little more than its request because the rest was too
// small to be split off, is told by what stood behind it; where nothing tells it, the least is taken.

#include "ullage/base/bytes.h"
#include "ullage/sim/caching.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ullage::sim {

class Layout final {
 public:
  using Piece = CachingAllocator::SeedPiece;
  using State = CachingAllocator::SeedPiece::State;
  using Segment = CachingAllocator::SeedSegment;

  // As at the end of the recording, which must outlive the layout. `fault()` is set where the file cannot be true, or
  // holds what is not modelled.
  Layout(const trace::DeviceRecording& recorded, const CachingSettings& settings);

  // Takes back all events, newest first, up to a fault.
  void undo_all();

  // Empty, or why there is no layout: "event 17: a free of 512 B at 0x7f00, where nothing is free".
  const std::string& fault() const { return fault_; }

  // By address, ready for CachingAllocator::seed().
  std::vector<Segment> segments() const;
  bool empty() const { return segments().empty(); }

 private:
  struct Placed {
    Address at;
    Piece piece;
    Address end() const { return at + piece.size; }
  };
  // A segment, or the range of an expandable one.
  struct Area {
    StreamId stream;
    bool small = false;
    bool expandable = false;
    std::vector<Placed> pieces;  // by address, without a gap
    Address end() const { return pieces.back().end(); }
    bool unmapped() const { return pieces.size() == 1 && pieces[0].piece.state == State::Unmapped; }
  };
  // Pages of an expandable segment seen anywhere in the recording.
  struct Stretch {
    Address at;
    Bytes size;
    StreamId stream;
    bool small = false;
  };

  void add_segment(const trace::Segment& segment);
  void add_ranges();
  std::vector<Stretch> stretches() const;
  void add_range(const std::vector<Stretch>& stretches, std::size_t first, std::size_t last);
  Area* area_at(Address at);
  bool change(Area& area, Address at, Bytes size, State from, Piece to);
  static void merge_around(Area& area, std::size_t index);

  void undo(const trace::record::Allocation& event);
  void undo(const trace::record::Free& event);
  void undo(const trace::record::SegmentAllocation& event);
  void undo(const trace::record::SegmentFree& event);
  void undo(const trace::record::SegmentMap& event);
  void undo(const trace::record::SegmentUnmap& event);
  void undo(const trace::record::FreeRequest&) {}
  void undo(const trace::record::OutOfMemory&) {}
  void undo(const trace::record::SnapshotTaken&) {}

  void give_slack(Area& area, std::size_t index);
  bool keeps_slack(const Area& area, Bytes size, Bytes slack) const;
  void fail(const char* what, Address at, Bytes size);

  const trace::DeviceRecording& recorded_;
  const CachingSettings settings_;
  std::map<Address, Area> areas_;  // by their first address
  std::size_t event_ = SIZE_MAX;   // that is being taken back
  std::string fault_;
};

// Can this be an allocator's event? Sizes and addresses of a damaged file can be anything.
bool plausible(Address at, Bytes size);

}  // namespace ullage::sim
