// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/saving.h"

#include <algorithm>
#include <vector>

namespace ullage::diagnose {
namespace {

Bytes of(Bytes bytes, Part part) {
  // Divides first: the numerator times a size from a damaged file might pass 2^64.
  return Bytes{bytes.count / part.denominator * part.numerator};
}

// How one event changes the saving from that event on, in bytes.
struct Change {
  std::uint64_t gone = 0;  // a storage is born, smaller by this
  std::uint64_t back = 0;  // a storage that was smaller by this dies
};

// If a request failed, only the events up to it count, and the refused bytes are added to the level at the last of
// them.
template <class Chosen>
Bytes fall_of_peak(const History& history, Part part, Chosen chosen) {
  const trace::Trace& trace = history.trace;
  const std::size_t end =
      history.failed() && history.moment.event ? history.moment.event->value + 1 : trace.events.size();
  std::vector<Change> changes(trace.events.size() + 1);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    if (!chosen(i)) continue;
    const trace::Storage& storage = trace.storages[i];
    const std::uint64_t bytes = of(storage.bytes, part).count;
    if (storage.from_before) before += bytes;
    changes[storage.from_before ? 0 : storage.born.value].gone += bytes;
    changes[storage.died.value].back += bytes;
  }
  const auto less = [](Bytes level, std::uint64_t gone, std::uint64_t back) {
    return saturating_sub(level, Bytes{gone > back ? gone - back : 0});
  };
  Bytes peak = trace.live_before;
  Bytes lowered = less(trace.live_before, before, 0);
  std::uint64_t gone = 0;
  std::uint64_t back = 0;
  for (std::size_t e = 0; e < end; ++e) {
    gone += changes[e].gone, back += changes[e].back;
    Bytes level = history.levels.live[e];
    Bytes level_then = less(level, gone, back);
    if (history.failed() && e + 1 == end) {
      level = level + history.oom->requested, level_then = level_then + history.oom->requested;
    }
    peak = std::max(peak, level), lowered = std::max(lowered, level_then);
  }
  return saturating_sub(peak, lowered);
}

}  // namespace

Bytes saving(const History& history, trace::Category category, Part part) {
  return fall_of_peak(history, part, [&](std::size_t i) { return history.categories[i] == category; });
}

Bytes saving(const History& history, Role role, Part part) {
  const auto bit = static_cast<std::uint8_t>(role);
  return fall_of_peak(history, part, [&](std::size_t i) { return (history.roles.of[i] & bit) != 0; });
}

}  // namespace ullage::diagnose
