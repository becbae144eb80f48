// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings for tests: made by a model while it works, as torch makes them; or read from a plain text, one segment,
// block or event to a line (tests/data/sim/README.md).

#include "ullage/sim/caching.h"
#include "ullage/trace/recording/recording.h"

#include <filesystem>

namespace ullage::sim {

// Keeps everything that is told as a recording.
class Recorder final : public Listener {
 public:
  void heard(const AllocatorEvent& event) override;

  // With the segments as they stand in `allocator` now, and the first `lost` events lost.
  trace::DeviceRecording recording(const CachingAllocator& allocator, std::size_t lost = 0) const;
  std::size_t size() const { return events_.size(); }

 private:
  std::vector<trace::RecordedEvent> events_;
};

// One device. A line that is none of the format fails the test.
trace::Recording read_recorded_text(const std::filesystem::path& path);

// A recording of this one device, as a file of the newest layout with these settings would give it.
trace::Recording recording_of(const trace::DeviceRecording& device, const CachingSettings& settings);

}  // namespace ullage::sim
