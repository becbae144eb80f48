// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings for tests. A model makes some of them while it works, as torch does. Others are read from plain text with
// one segment, block or event on a line (tests/data/sim/README.md).

#include "ullage/sim/caching.h"
#include "ullage/trace/recording/recording.h"

#include <filesystem>

namespace ullage::sim {

// Keeps all events, to make a recording of them.
class Recorder final : public Listener {
 public:
  void heard(const AllocatorEvent& event) override;

  // Returns a recording without the first `lost` events, and with the segments of `allocator` as they are now.
  trace::DeviceRecording recording(const CachingAllocator& allocator, std::size_t lost = 0) const;
  std::size_t size() const { return events_.size(); }

 private:
  std::vector<trace::RecordedEvent> events_;
};

// Reads a recording of one device. A line that is not of the format fails the test.
trace::Recording read_recorded_text(const std::filesystem::path& path);

// Returns a recording of this one device, as it would be read from a snapshot of the newest layout with these settings.
trace::Recording recording_of(const trace::DeviceRecording& device, const CachingSettings& settings);

}  // namespace ullage::sim
