// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include <algorithm>
#include <functional>
#include <map>

namespace ullage::report {
namespace {

// Plain numbers, because addresses of a damaged file may pass the end of the address space.
using Place = std::uint64_t;

Place end_of(Address address, Bytes bytes) {
  return bytes.count > UINT64_MAX - address.value ? UINT64_MAX : address.value + bytes.count;
}

// The ranges that are open now, by address. They never overlap.
class OpenRanges {
 public:
  explicit OpenRanges(std::vector<PlacedRange>& closed) : closed_(closed) {}

  void open(Place begin, Place end, std::uint64_t moment) {
    if (begin >= end) return;
    close(begin, end, moment, false);
    open_[begin] = {end, moment};
  }

  // Closes what is open in [begin, end). With `was_before`, the parts that are not open count as ranges that existed
  // before the first event.
  void close(Place begin, Place end, std::uint64_t moment, bool was_before) {
    Place at = begin;
    auto it = open_.upper_bound(begin);
    if (it != open_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != open_.end() && it->first < end) {
      const auto [first, range] = *it;
      it = open_.erase(it);
      if (was_before && first > at) add(0, moment, at, first);
      if (first < begin) open_[first] = {begin, range.from};
      if (range.end > end) it = open_.insert({end, {range.end, range.from}}).first;
      add(range.from, moment, std::max(first, begin), std::min(range.end, end));
      at = std::min(range.end, end);
    }
    if (was_before && at < end) add(0, moment, at, end);
  }

  void close_all(std::uint64_t moment) {
    for (const auto& [begin, range] : open_) add(range.from, moment, begin, range.end);
    open_.clear();
  }

 private:
  struct Range {
    Place end = 0;
    std::uint64_t from = 0;
  };
  void add(std::uint64_t from, std::uint64_t to, Place begin, Place end) {
    if (from < to && begin < end) closed_.push_back({from, to, Address{begin}, Bytes{end - begin}});
  }
  std::map<Place, Range> open_;
  std::vector<PlacedRange>& closed_;
};

}  // namespace

std::vector<PlacedRange> reserved_ranges(const trace::Trace& trace, const trace::DeviceRecording& recorded) {
  std::vector<PlacedRange> ranges;
  OpenRanges open(ranges);
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const auto& what = trace.events[e].what;
    if (const auto* more = std::get_if<trace::event::ReservedMore>(&what)) {
      open.open(more->address.value, end_of(more->address, more->bytes), e + 1);
    } else if (const auto* less = std::get_if<trace::event::ReservedLess>(&what)) {
      open.close(less->address.value, end_of(less->address, less->bytes), e + 1, true);
    }
  }
  const std::uint64_t beyond = trace.events.size() + 1;
  for (const trace::Segment& segment : recorded.segments) {
    open.close(segment.address.value, end_of(segment.address, segment.size), beyond, true);
  }
  open.close_all(beyond);
  std::sort(ranges.begin(), ranges.end(), [](const PlacedRange& a, const PlacedRange& b) {
    return std::pair(a.address, a.from) < std::pair(b.address, b.from);
  });
  return ranges;
}

}  // namespace ullage::report
