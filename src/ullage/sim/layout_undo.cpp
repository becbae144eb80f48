// SPDX-License-Identifier: Apache-2.0
// Undoes single events of a recording (layout.h). Events are undone newest first. A contradiction ends the work: fail()
// notes it, with the address and the bytes.
//
// The slack of a block is the part beyond its rounded size, which the allocator did not split off because the rest
// would have been too small.
#include "ullage/sim/layout.h"

#include <algorithm>
#include <iterator>

namespace ullage::sim {

// Can a block of the rounded size `size` have that much slack? In the large pool the allocator does not split off a
// rest of up to 1 MiB. A block of max_split_size or more it does not split at all. Blocks of small and of expandable
// segments are always split.
bool Layout::keeps_slack(const Area& area, Bytes size, Bytes slack) const {
  if (area.small || area.expandable) return false;
  return slack <= CachingSettings::kSmall || (settings_.max_split && size >= *settings_.max_split);
}

// If the piece at `index` is free and can be slack of the live block before it, adds it to that block.
void Layout::give_slack(Area& area, std::size_t index) {
  if (index == 0 || area.pieces[index].piece.state != State::Free) return;
  const Piece& before = area.pieces[index - 1].piece;
  if (before.state != State::Live || !keeps_slack(area, before.size, area.pieces[index].piece.size)) return;
  area.pieces[index - 1].piece.size += area.pieces[index].piece.size;
  area.pieces.erase(area.pieces.begin() + static_cast<std::ptrdiff_t>(index));
}

namespace {

template <class Pieces>
std::size_t index_at(const Pieces& pieces, Address at) {
  const auto found = std::lower_bound(pieces.begin(), pieces.end(), at,
                                      [](const auto& placed, Address address) { return placed.at < address; });
  return static_cast<std::size_t>(found - pieces.begin());
}

}  // namespace

// The allocator cuts a block from the front of a free one. So no free piece can stand before the block: it would have
// been part of the same free block. Slack of the block before is no free piece by now, because give_slack() has added
// it to that block.
void Layout::undo(const trace::record::Allocation& event) {
  Area* area = plausible(event.address, event.bytes) ? area_at(event.address) : nullptr;
  if (!area) return fail("an allocation outside all segments", event.address, event.bytes);
  const std::size_t index = index_at(area->pieces, event.address);
  const bool there = index < area->pieces.size() && area->pieces[index].at == event.address &&
                     area->pieces[index].piece.state == State::Live;
  if (!there) return fail("an allocation whose block is not there", event.address, event.bytes);
  if (index > 0 && area->pieces[index - 1].piece.state == State::Free) {
    return fail("an allocation that left free bytes before it", event.address, event.bytes);
  }
  area->pieces[index].piece.state = State::Free;
  area->pieces[index].piece.requested = Bytes{};
  merge_around(*area, index);
}

void Layout::undo(const trace::record::Free& event) {
  Area* area = plausible(event.address, event.bytes) ? area_at(event.address) : nullptr;
  if (!area) return fail("a free outside all segments", event.address, event.bytes);
  const Bytes size = settings_.block_for(event.bytes);
  if (!change(*area, event.address, size, State::Free, {size, event.bytes, State::Live})) {
    return fail("a free where no block was", event.address, event.bytes);
  }
  // Pieces that cannot be free blocks of the large pool are slack. That is a piece of up to 1 MiB, or one behind a
  // block of max_split_size or more.
  const std::size_t index = index_at(area->pieces, event.address);
  const auto unused = [&](std::size_t at) {
    return at < area->pieces.size() &&
           (area->pieces[at].piece.size <= CachingSettings::kSmall ||
            (settings_.max_split && area->pieces[at - 1].piece.size >= *settings_.max_split));
  };
  if (unused(index + 1)) give_slack(*area, index + 1);
  if (index > 1 && unused(index - 1)) give_slack(*area, index - 1);
}

void Layout::undo(const trace::record::SegmentAllocation& event) {
  const auto found = areas_.find(event.address);
  const bool whole = found != areas_.end() && found->second.pieces.size() == 1 && !found->second.expandable &&
                     found->second.pieces[0].piece.state == State::Free &&
                     found->second.pieces[0].piece.size == event.bytes;
  if (!whole) return fail("a new segment that is not empty, or not there,", event.address, event.bytes);
  areas_.erase(found);
}

void Layout::undo(const trace::record::SegmentFree& event) {
  if (!plausible(event.address, event.bytes)) return fail("a segment given back", event.address, event.bytes);
  const auto above = areas_.upper_bound(event.address);
  const bool free_below = above == areas_.begin() || std::prev(above)->second.end() <= event.address;
  if (!free_below || (above != areas_.end() && above->first < event.address + event.bytes)) {
    return fail("a segment given back where another is", event.address, event.bytes);
  }
  const bool small = event.bytes == settings_.segment_for(CachingSettings::kUnit);  // the size of all small segments
  areas_.emplace(event.address,
                 Area{event.stream, small, false, {{event.address, {event.bytes, Bytes{}, State::Free}}}});
}

void Layout::undo(const trace::record::SegmentMap& event) {
  Area* area = plausible(event.address, event.bytes) ? area_at(event.address) : nullptr;
  if (!area || !change(*area, event.address, event.bytes, State::Free, {event.bytes, Bytes{}, State::Unmapped})) {
    return fail("pages mapped that are not free", event.address, event.bytes);
  }
  merge_around(*area, index_at(area->pieces, event.address));
}

void Layout::undo(const trace::record::SegmentUnmap& event) {
  Area* area = plausible(event.address, event.bytes) ? area_at(event.address) : nullptr;
  if (!area || !change(*area, event.address, event.bytes, State::Unmapped, {event.bytes, Bytes{}, State::Free})) {
    return fail("pages unmapped that were not mapped", event.address, event.bytes);
  }
  merge_around(*area, index_at(area->pieces, event.address));
}

}  // namespace ullage::sim
