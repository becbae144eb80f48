// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recorded history put through the model of the allocator that made it: does the model take and release the same
// segments, and what would other settings have taken?

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/sim/caching_settings.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ullage::sim {

struct Difference {
  EventId event;     // of the recording
  Bytes real;        // size of the segment taken or released there; zero: none was
  Bytes model;       // likewise
  std::string what;  // one line: "segment_alloc of 20.00 MiB, the model took its block from 0x7f... instead"
};

inline constexpr Bytes kLargeDevice{1ull << 40};

struct Replay {
  unsigned device = 0;
  bool complete = false;            // the history begins with the process, or its beginning was reconstructed
  bool reconstructed = false;       // the segments before the first event were worked out from those at the end
  std::uint64_t events = 0;         // compared, before the first difference
  std::uint64_t segments_real = 0;  // taken, over the whole history
  std::uint64_t segments_model = 0;
  Bytes reserved_peak_real, reserved_peak_model;
  std::optional<Difference> first_difference;
  Ties ties = Ties::OldestSegment;  // that agreed longest
  bool same_end = false;            // the model's blocks at the end are those of the file, one by one
  std::string why_not;              // where not complete: what in the file cannot be true, or is not modelled
};

// Those that were in force, as far as the file says; torch's defaults elsewhere. The memory fraction is in no file.
CachingSettings settings_of(const trace::Recording& recording);

// With the recorded settings. Each rule for ties is tried unless the recording's features fix it. The size of the
// device, which no snapshot tells, decides how many addresses an expandable segment reserves, and nothing else here.
Replay replay(const trace::DeviceRecording& recorded, const trace::Recording& all, Bytes device_total = kLargeDevice);

struct WhatIf {
  Bytes live_peak;  // blocks, rounded up as these settings do
  Bytes reserved_peak;
  std::uint64_t segments = 0;  // taken, maps of expandable ones included
};

// The same requests and frees under other settings, on a device without limit, from an empty pool and what was live
// before the first event; that is worked out with the settings in force then, and left out where the file contradicts
// itself (Replay::why_not).
WhatIf what_if(const trace::DeviceRecording& recorded, const CachingSettings& settings,
               const CachingSettings& recorded_with = {});

}  // namespace ullage::sim
