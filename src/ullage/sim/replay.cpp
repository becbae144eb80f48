// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/replay.h"

#include "ullage/sim/follower.h"
#include "ullage/sim/layout.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace ullage::sim {
namespace {

using trace::record::SegmentAllocation;
using trace::record::SegmentFree;
using trace::record::SegmentMap;
using trace::record::SegmentUnmap;

// A layout before D is from torch 2.5 or older, which has only one rule.
std::vector<Ties> possible_ties(const trace::Recording& all) {
  const bool late = all.layout == trace::SnapshotLayout::D || all.layout == trace::SnapshotLayout::X;
  if (!late) return {Ties::LowestAddress};
  return {Ties::LowestAddress, Ties::OldestSegment, Ties::OldestBlock};
}

struct RealReserved {
  Bytes peak;
  std::uint64_t taken = 0;
};

// Follows the reserved bytes over the events, beginning at `before`. Sums saturate, because a damaged file can have any
// size.
RealReserved reserved_in(const std::vector<trace::RecordedEvent>& events, Bytes before) {
  Bytes now = before;
  RealReserved reserved{now, 0};
  const auto take = [&](Bytes bytes) {
    now += std::min(bytes, Bytes{UINT64_MAX} - now);
    reserved.peak = std::max(reserved.peak, now);
    ++reserved.taken;
  };
  for (const trace::RecordedEvent& event : events) {
    if (const auto* got = std::get_if<SegmentAllocation>(&event.what)) take(got->bytes);
    if (const auto* mapped = std::get_if<SegmentMap>(&event.what)) take(mapped->bytes);
    if (const auto* gone = std::get_if<SegmentFree>(&event.what)) now = saturating_sub(now, gone->bytes);
    if (const auto* unmapped = std::get_if<SegmentUnmap>(&event.what)) now = saturating_sub(now, unmapped->bytes);
  }
  return reserved;
}

Bytes reserved_before(const std::vector<Layout::Segment>& segments) {
  Bytes sum;
  for (const Layout::Segment& segment : segments)
    for (const Layout::Piece& piece : segment.pieces)
      if (piece.state != Layout::State::Unmapped) sum += piece.size;
  return sum;
}

bool same_blocks(const CachingAllocator& model, const std::vector<trace::Segment>& segments) {
  const std::vector<CachingAllocator::BlockView> ours = model.blocks();
  std::size_t at = 0;
  for (const trace::Segment& segment : segments) {
    for (const trace::Block& block : segment.blocks) {
      if (at == ours.size()) return false;
      const CachingAllocator::BlockView& view = ours[at++];
      const bool held = block.state != trace::Block::State::Inactive;
      if (view.address != block.address || view.size != block.size || (view.live || view.pending) != held) return false;
    }
  }
  return at == ours.size();
}

constexpr std::uint64_t kMostEvents = 4'000'000;  // follow() replays at most this many again, over all tries

// The index of the segment that holds the address; segments.size() if there is none.
std::size_t holder(const std::vector<Layout::Segment>& segments, Address at) {
  const auto holds = [&](const Layout::Segment& segment) {
    Address end = segment.address;
    for (const Layout::Piece& piece : segment.pieces) end = end + piece.size;
    return segment.address <= at && at < end;
  };
  return static_cast<std::size_t>(std::find_if(segments.begin(), segments.end(), holds) - segments.begin());
}

// No recording says which of two segments from before the first event is older. Suppose the model takes another block
// than the real allocator did, and the real block's segment comes later in `before` than the model's. Then the real
// segment may be the older one. So this moves it before the model's and replays again. It stops if the model agrees,
// if the first difference is of another kind or comes earlier than before, or after kMostEvents.
std::unique_ptr<Follower> follow(const std::vector<trace::RecordedEvent>& events, const CachingSettings& settings,
                                 std::vector<Layout::Segment> before, Bytes device_total) {
  const auto run = [&] {
    auto follower = std::make_unique<Follower>(settings, before, device_total);
    follower->follow(events);
    return follower;
  };
  std::unique_ptr<Follower> best = run();
  for (std::uint64_t followed = 0; followed + events.size() <= kMostEvents; followed += events.size()) {
    const auto& difference = best->difference();
    if (settings.ties == Ties::LowestAddress || !difference || !difference->places) break;
    const std::size_t real = holder(before, difference->places->real);
    const std::size_t model = holder(before, difference->places->model);
    if (real >= before.size() || model >= real) break;
    const auto from = before.begin() + static_cast<std::ptrdiff_t>(real);
    std::rotate(before.begin() + static_cast<std::ptrdiff_t>(model), from, from + 1);
    std::unique_ptr<Follower> next = run();
    if (next->difference() && next->difference()->event < difference->event) break;
    best = std::move(next);
  }
  return best;
}

}  // namespace

CachingSettings settings_of(const trace::Recording& recording) {
  if (!recording.settings) return {};
  const trace::RecordedSettings& recorded = *recording.settings;
  CachingSettings settings;
  if (const Result<CachingSettings> parsed = CachingSettings::parse(recorded.text)) settings = *parsed;
  if (recorded.max_split) settings.max_split = recorded.max_split;
  settings.garbage_collection_threshold = recorded.garbage_collection_threshold;
  settings.expandable_segments = recorded.expandable_segments;
  for (const auto& [interval, divisions] : recorded.roundup_power2_divisions) {
    if (!std::has_single_bit(interval) || (divisions != 0 && !std::has_single_bit(divisions))) continue;
    const auto index = static_cast<std::size_t>(std::countr_zero(interval));
    if (index < settings.roundup_power2_divisions.size()) settings.roundup_power2_divisions[index] = divisions;
  }
  return settings;
}

Replay replay(const trace::DeviceRecording& recorded, const trace::Recording& all, Bytes device_total) {
  CachingSettings settings = settings_of(all);
  Layout layout(recorded, settings);
  layout.undo_all();
  Replay result;
  result.device = recorded.device;
  result.why_not = layout.fault();
  const std::vector<Layout::Segment> before = layout.segments();
  const RealReserved real = reserved_in(recorded.events, reserved_before(before));
  result.reserved_peak_real = real.peak;
  result.segments_real = real.taken;
  if (!result.why_not.empty()) return result;
  result.complete = true;
  result.reconstructed = !before.empty();
  bool first = true;
  for (const Ties ties : possible_ties(all)) {
    settings.ties = ties;
    const std::unique_ptr<Follower> follower = follow(recorded.events, settings, before, device_total);
    const auto& difference = follower->difference();
    const std::uint64_t equal = difference ? difference->event : recorded.events.size();
    if (!first && equal <= result.events) continue;
    first = false;
    result.events = equal;
    result.ties = ties;
    result.segments_model = follower->model().stats().segments_taken;
    result.reserved_peak_model = follower->model().stats().reserved_peak;
    result.same_end = same_blocks(follower->model(), recorded.segments);
    result.first_difference.reset();
    if (!difference) break;
    result.first_difference = {EventId{difference->event}, difference->real, difference->model, difference->what};
  }
  return result;
}

}  // namespace ullage::sim
