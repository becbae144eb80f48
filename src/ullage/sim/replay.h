// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replays a recording through the model of the allocator that made it. Does the model take and release the same
// segments? How much would other settings have reserved?

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/sim/caching_settings.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ullage::sim {

struct Difference {
  EventId event;     // in the recording
  Bytes real;        // size of the segment that was taken or released there; zero: none
  Bytes model;       // the same for the model
  std::string what;  // one line: "alloc of 20.00 MiB, the model takes another block"
};

inline constexpr Bytes kLargeDevice{1ull << 40};

struct Replay {
  unsigned device = 0;
  bool complete = false;            // the state before the first event is known: empty, or reconstructed
  bool reconstructed = false;       // there were segments before the first event, worked out from those at the end
  std::uint64_t events = 0;         // how many agree before the first difference
  std::uint64_t segments_real = 0;  // taken during the whole recording, each map of pages included
  std::uint64_t segments_model = 0;
  Bytes reserved_peak_real, reserved_peak_model;
  std::optional<Difference> first_difference;
  Ties ties = Ties::OldestSegment;  // the rule that agreed longest
  bool same_end = false;            // the model's blocks at the end are exactly those of the file
  std::string why_not;              // if not complete: what contradicts itself in the file, or is not modelled
};

// The settings of the recorded process as far as the file has them, else torch's defaults. A memory fraction that the
// program set by a call is in no file.
CachingSettings settings_of(const trace::Recording& recording);

// Replays with the recorded settings. Tries the rules for ties until one agrees with the whole recording. If the file's
// layout shows a version of torch that has only one rule, tries that one alone. No snapshot has the device's size; here
// it only decides how many addresses an expandable segment reserves.
Replay replay(const trace::DeviceRecording& recorded, const trace::Recording& all, Bytes device_total = kLargeDevice);

struct WhatIf {
  Bytes live_peak;  // block sizes, rounded up by these settings
  Bytes reserved_peak;
  std::uint64_t segments = 0;  // taken; each map of pages counts as one
};

// Makes the recorded requests and frees under other settings, on a device that is never full. Starts with an empty
// pool, into which the blocks that were live before the first event are allocated. These are worked out with
// `recorded_with`, the settings of the recording, and left out if the file contradicts itself (Replay::why_not).
WhatIf what_if(const trace::DeviceRecording& recorded, const CachingSettings& settings,
               const CachingSettings& recorded_with = {});

}  // namespace ullage::sim
