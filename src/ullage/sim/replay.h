// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recorded history put through the model of the allocator that made it: does the model take and release the same
// segments, and what would other settings have taken?

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/sim/caching_settings.h"
#include "ullage/trace/recording.h"

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
};

// With the recorded settings. Each rule for ties is tried unless the recording's features fix it.
Replay replay(const trace::DeviceRecording& recorded, const trace::Recording& all);

struct WhatIf {
  Bytes live_peak;
  Bytes reserved_peak;
  std::uint64_t segments = 0;
};

// The same requests and frees under other settings, on a device without limit, from an empty pool and what was live
// before the first event.
WhatIf what_if(const trace::DeviceRecording& recorded, const CachingSettings& settings);

}  // namespace ullage::sim
