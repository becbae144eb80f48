// SPDX-License-Identifier: Apache-2.0
#pragma once

// The time axis of a converted recording: where an event or an annotation stands in the viewer (convert_perfetto.cpp).

#include "ullage/trace/recording/trace.h"

#include <algorithm>
#include <cstdint>

namespace ullage::report {

// Maps an event to its place on the axis: microseconds since the earliest event or annotation. If any event has no
// time, every event's place is its number. `trace` must outlive this object.
class EventAxis final {
 public:
  explicit EventAxis(const trace::Trace& trace) : trace_(trace) {
    timed_ = !trace.events.empty() &&
             std::all_of(trace.events.begin(), trace.events.end(), [](const auto& e) { return e.at.has_value(); });
    if (!timed_) return;
    began_ = ended_ = trace.events.front().at->count;
    for (const auto& event : trace.events) widen(event.at->count);
    for (const auto& annotation : trace.annotations) widen(annotation.at.count);
  }

  bool timed() const { return timed_; }
  std::int64_t end() const { return timed_ ? span(ended_) : static_cast<std::int64_t>(trace_.events.size()); }
  std::int64_t of(EventId event) const {
    if (event >= trace_.end()) return end();
    return timed_ ? span(trace_.events[event.value].at->count) : static_cast<std::int64_t>(event.value);
  }
  std::int64_t of(trace::Microseconds at) const { return span(at.count); }

 private:
  void widen(std::int64_t at) {
    began_ = std::min(began_, at);
    ended_ = std::max(ended_, at);
  }
  // Times of a damaged file may be further apart than 63 bits can hold.
  std::int64_t span(std::int64_t at) const {
    const auto apart = static_cast<std::uint64_t>(at) - static_cast<std::uint64_t>(began_);
    return static_cast<std::int64_t>(std::min(apart, static_cast<std::uint64_t>(INT64_MAX)));
  }

  const trace::Trace& trace_;
  bool timed_ = false;
  std::int64_t began_ = 0, ended_ = 0;
};

}  // namespace ullage::report
