// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out the segments and blocks of an allocator before the first event of a recording. Starts from those at the
// end, which the file has, and undoes the events, newest first.
//
//   at the end     |####|##|------|     blocks as in the file
//   undo alloc     |####|---------|     a block becomes free and merges with free neighbours
//   undo free      |####|---|##|--|     a block is cut out of a free one; its size is the request, rounded up
//
// A block can be larger than its rounded request: the allocator does not split a block if the rest would be too small.
// When a free is undone, the block is cut out with its rounded size. A free piece behind the block that is smaller than
// any free block can be is this rest. It is added to the block.

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

  // Starts as at the end of the recording, which must outlive the layout. Sets fault() if the file contradicts itself
  // or has something that is not modelled.
  Layout(const trace::DeviceRecording& recorded, const CachingSettings& settings);

  // Undoes all events, newest first. Stops at a fault.
  void undo_all();

  // Empty, or why there is no layout: "event 17: a free where no block was at 0x7f00, 512 B".
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
  // A segment, or the whole address range of an expandable segment.
  struct Area {
    StreamId stream;
    bool small = false;
    bool expandable = false;
    std::vector<Placed> pieces;  // by address, without a gap
    Address end() const { return pieces.back().end(); }
    bool unmapped() const { return pieces.size() == 1 && pieces[0].piece.state == State::Unmapped; }
  };
  // Pages of an expandable segment that are mapped at any time in the recording.
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
  std::map<Address, Area> areas_;  // by first address
  std::size_t event_ = SIZE_MAX;   // the one being undone
  std::string fault_;
};

// Whether an allocator can have reported this. Sizes and addresses in a damaged file can have any value.
bool plausible(Address at, Bytes size);

}  // namespace ullage::sim
