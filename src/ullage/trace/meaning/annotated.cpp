// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/annotated.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ullage::trace {
namespace {

// The time of each event, or of the event before it if it has none. None if there are no times or they go backwards.
std::optional<std::vector<std::int64_t>> times_of(const Trace& trace) {
  std::vector<std::int64_t> times;
  times.reserve(trace.events.size());
  bool any = false;
  for (const Event& one : trace.events) {
    const std::int64_t before = times.empty() ? INT64_MIN : times.back();
    const std::int64_t now = one.at ? one.at->count : before;
    if (now < before) return std::nullopt;
    any |= one.at.has_value();
    times.push_back(now);
  }
  return any ? std::optional(std::move(times)) : std::nullopt;
}

}  // namespace

std::vector<Annotated> annotated(const Trace& trace) {
  std::vector<Annotated> ranges;
  if (trace.annotations.empty()) return ranges;
  const auto times = times_of(trace);
  if (!times) return ranges;
  std::vector<const Annotation*> in_order;
  for (const Annotation& one : trace.annotations) in_order.push_back(&one);
  std::ranges::stable_sort(in_order, {}, [](const Annotation* one) { return one->at; });

  const auto at = [&](auto place) { return EventId{std::uint64_t(place - times->begin())}; };
  std::map<std::string_view, std::vector<EventId>> open;  // by name; the last one opened is closed first
  for (const Annotation* one : in_order) {
    std::vector<EventId>& begins = open[one->name];
    if (one->start) {
      begins.push_back(at(std::ranges::lower_bound(*times, one->at.count)));
    } else if (!begins.empty()) {
      const EventId end = at(std::ranges::upper_bound(*times, one->at.count));
      ranges.push_back({one->name, begins.back(), std::max(begins.back(), end), true});
      begins.pop_back();
    }
  }
  for (const auto& [name, begins] : open) {
    for (const EventId begin : begins) ranges.push_back({name, begin, trace.end(), false});
  }
  return ranges;
}

}  // namespace ullage::trace
