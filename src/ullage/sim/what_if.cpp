// SPDX-License-Identifier: Apache-2.0
// Runs the requests of a recording under other settings.
#include "ullage/sim/caching.h"
#include "ullage/sim/device.h"
#include "ullage/sim/layout.h"
#include "ullage/sim/replay.h"

#include <unordered_map>
#include <variant>

namespace ullage::sim {
namespace {

constexpr Bytes kEndlessDevice{
    1ull << 50};  // more than any device has; the ranges of expandable segments still fit 64 bits

class Program final {
 public:
  explicit Program(const CachingSettings& settings) : device_(kEndlessDevice), model_(settings, device_) {}

  void allocate(Address at, Bytes bytes, StreamId stream) {
    if (!plausible(at, bytes)) return;
    const auto outcome = model_.allocate(bytes, stream);
    if (const auto* allocation = std::get_if<Allocation>(&outcome)) live_.insert_or_assign(at.value, allocation->block);
  }
  void free(Address at) {
    const auto found = live_.find(at.value);
    if (found == live_.end()) return;
    model_.free(found->second);
    live_.erase(found);
  }
  void apply(const trace::RecordedEvent& event) {
    if (const auto* request = std::get_if<trace::record::Allocation>(&event.what)) {
      allocate(request->address, request->bytes, request->stream);
    } else if (const auto* free_event = std::get_if<trace::record::Free>(&event.what)) {
      free(free_event->address);
    }
  }
  const CachingStats& stats() const { return model_.stats(); }

 private:
  SimulatedDevice device_;
  CachingAllocator model_;
  std::unordered_map<std::uint64_t, BlockId> live_;  // by recorded address
};

}  // namespace

WhatIf what_if(const trace::DeviceRecording& recorded, const CachingSettings& settings,
               const CachingSettings& recorded_with) {
  Layout layout(recorded, recorded_with);
  layout.undo_all();
  Program program(settings);
  if (layout.fault().empty()) {
    for (const Layout::Segment& segment : layout.segments()) {
      Address at = segment.address;
      for (const Layout::Piece& piece : segment.pieces) {
        const bool known = piece.requested.count > 0 && piece.requested <= piece.size;
        if (piece.state == Layout::State::Live)
          program.allocate(at, known ? piece.requested : piece.size, segment.stream);
        at = at + piece.size;
      }
    }
  }
  for (const trace::RecordedEvent& event : recorded.events) program.apply(event);
  return {program.stats().allocated_peak, program.stats().reserved_peak, program.stats().segments_taken};
}

}  // namespace ullage::sim
