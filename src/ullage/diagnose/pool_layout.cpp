// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/pool_layout.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ullage::diagnose {
namespace {

// 64 PiB: no pool is larger. Larger figures of a damaged file are not added up, because sums must not pass 2^64.
constexpr Bytes kLargestPool{std::uint64_t{1} << 56};

constexpr Bytes kLeastPinned = 1_MiB;  // a segment with fewer bytes of holes has no Pin

// Ranges [begin, end) of addresses. Ordinary segments never merge; the pages of expandable segments do.
class Ranges {
 public:
  void add(Address begin, Bytes bytes, bool merges) {
    if (bytes == Bytes{} || bytes > kLargestPool || begin.value > UINT64_MAX - bytes.count) return;
    std::uint64_t from = begin.value;
    std::uint64_t to = from + bytes.count;
    if (merges) {
      auto next = ranges_.lower_bound(from);
      if (next != ranges_.begin() && std::prev(next)->second >= from) --next;
      while (next != ranges_.end() && next->first <= to) {
        from = std::min(from, next->first), to = std::max(to, next->second);
        next = ranges_.erase(next);
      }
    }
    ranges_[from] = to;
  }

  void remove(Address begin, Bytes bytes) {
    if (begin.value > UINT64_MAX - bytes.count) return;
    const std::uint64_t from = begin.value;
    const std::uint64_t to = from + bytes.count;
    auto at = ranges_.upper_bound(from);
    if (at == ranges_.begin()) return;
    --at;
    const auto [first, last] = *at;
    if (last < to) return;  // not held: the recording contradicts itself
    ranges_.erase(at);
    if (first < from) ranges_[first] = from;
    if (to < last) ranges_[to] = last;
  }

  const std::map<std::uint64_t, std::uint64_t>& all() const { return ranges_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

// Returns the segments at the moment: takes those at the end of the recording and undoes the events back to the moment.
Ranges segments_at(const trace::DeviceRecording& recorded, const trace::Moment& moment) {
  Ranges ranges;
  for (const trace::Segment& segment : recorded.segments) ranges.add(segment.address, segment.size, segment.expandable);
  const std::size_t first = moment.event ? moment.event->value + 1 : 0;
  for (std::size_t i = recorded.events.size(); i-- > first;) {
    const auto& what = recorded.events[i].what;
    if (const auto* more = std::get_if<trace::record::SegmentAllocation>(&what)) {
      ranges.remove(more->address, more->bytes);
    } else if (const auto* mapped = std::get_if<trace::record::SegmentMap>(&what)) {
      ranges.remove(mapped->address, mapped->bytes);
    } else if (const auto* less = std::get_if<trace::record::SegmentFree>(&what)) {
      ranges.add(less->address, less->bytes, false);
    } else if (const auto* unmapped = std::get_if<trace::record::SegmentUnmap>(&what)) {
      ranges.add(unmapped->address, unmapped->bytes, true);
    }
  }
  return ranges;
}

struct Owned {
  Bytes live, largest;  // of all its blocks; of its largest one
};

struct Within {
  Bytes live, largest_hole;
  std::unordered_map<std::string, Owned> by_owner;
};

// Looks into one segment. `live` is sorted by address, so the segment's storages are neighbours, from `next` on.
Within look_into(std::uint64_t begin, std::uint64_t end, const trace::Trace& trace, const std::vector<StorageId>& live,
                 std::size_t& next, const std::vector<trace::StackMeaning>& meanings) {
  constexpr Bytes kAlignment = 512_B;  // of blocks; kMinBlockSize of c10/cuda/CUDACachingAllocator.cpp
  Within within;
  std::uint64_t covered = begin;
  for (; next < live.size(); ++next) {
    const trace::Storage& storage = trace.storages[live[next].value];
    if (storage.address.value >= end) break;
    if (storage.address.value < begin) continue;  // it lies in no segment
    if (storage.address.value > covered) {
      within.largest_hole = std::max(within.largest_hole, Bytes{storage.address.value - covered});
    }
    const Bytes bytes = std::min(storage.bytes, Bytes{end - storage.address.value});
    if (bytes > kLargestPool || within.live > kLargestPool) continue;
    within.live += bytes;
    covered = std::max(
        covered, storage.address.value + std::min(round_up(bytes, kAlignment).count, end - storage.address.value));
    const std::size_t stack = storage.stack.value;
    const bool known = stack < meanings.size() && !meanings[stack].name.empty();
    Owned& owned = within.by_owner[known ? meanings[stack].name : "blocks without a stack"];
    owned.live += bytes;
    owned.largest = std::max(owned.largest, bytes);
  }
  within.largest_hole = std::max(within.largest_hole, Bytes{end - std::min(covered, end)});
  return within;
}

// Of two owners with equally many bytes, the first by name is chosen, so that an answer does not depend on a hash.
bool owns_less(const std::pair<const std::string, Owned>& a, const std::pair<const std::string, Owned>& b) {
  return std::tie(a.second.live, b.first) < std::tie(b.second.live, a.first);
}

std::vector<Pin> sorted_pins(const std::map<std::string, Pin>& by_owner) {
  std::vector<Pin> pins;
  pins.reserve(by_owner.size());
  for (const auto& [owner, pin] : by_owner) pins.push_back(pin);
  std::stable_sort(pins.begin(), pins.end(), [](const Pin& a, const Pin& b) { return a.pinned > b.pinned; });
  return pins;
}

}  // namespace

std::vector<StorageId> live_at(const trace::Trace& trace, const trace::Moment& moment) {
  std::vector<StorageId> live;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const trace::Storage& storage = trace.storages[i];
    const bool there =
        moment.event ? storage.born <= *moment.event && *moment.event < storage.died : storage.from_before;
    if (there) live.push_back(StorageId{i});
  }
  return live;
}

std::optional<PoolLayout> layout_at(const trace::DeviceRecording& recorded, const trace::Trace& trace,
                                    const trace::Moment& moment, const std::vector<trace::StackMeaning>& meanings) {
  const Ranges ranges = segments_at(recorded, moment);
  if (ranges.all().empty()) return std::nullopt;
  std::vector<StorageId> live = live_at(trace, moment);
  std::sort(live.begin(), live.end(), [&](StorageId a, StorageId b) {
    return trace.storages[a.value].address < trace.storages[b.value].address;
  });
  PoolLayout layout;
  std::map<std::string, Pin> pins;
  std::size_t next = 0;
  Bytes live_bytes;
  for (const auto& [begin, end] : ranges.all()) {
    const Within within = look_into(begin, end, trace, live, next, meanings);
    const Bytes size{end - begin};
    const Bytes holes = saturating_sub(size, within.live);
    if (size > kLargestPool || layout.reserved > kLargestPool) return std::nullopt;
    layout.reserved += size;
    ++layout.segments;
    live_bytes += std::min(within.live, size);
    layout.largest_hole = std::max(layout.largest_hole, within.largest_hole);
    if (within.live == Bytes{}) {
      layout.usable += size;
      ++layout.empty_segments;
    } else {
      layout.stuck += holes;
      if (holes >= kLeastPinned) {
        const auto& [owner, owned] = *std::max_element(within.by_owner.begin(), within.by_owner.end(), owns_less);
        Pin& pin = pins[owner];
        pin.owner = owner;
        pin.live += within.live, pin.own += owned.live, pin.pinned += holes, ++pin.segments;
        pin.largest = std::max(pin.largest, owned.largest);
      }
    }
  }
  if (live_bytes != moment.live || layout.reserved != moment.reserved) return std::nullopt;
  for (const trace::Segment& segment : recorded.segments) {
    if (segment.pool != std::pair<std::uint64_t, std::uint64_t>{0, 0}) layout.in_private_pools += segment.size;
  }
  layout.pins = sorted_pins(pins);
  return layout;
}

}  // namespace ullage::diagnose
