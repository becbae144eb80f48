// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the history of a PyTorch snapshot, the lists of events in `device_traces`: allocations, frees, segments,
// refused requests.

#include "ullage/read/snapshot/snapshot_stacks.h"
#include "ullage/trace/recording/recording.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ullage::read {

class SnapshotEvents final {
 public:
  SnapshotEvents(SnapshotSource& source, SnapshotStacks& stacks);

  // Returns the events of one device, oldest first. Events of an unknown kind are left out and counted.
  std::vector<trace::RecordedEvent> read(PickleValue list);

  // Whether an event had these keys, which indicate torch's version.
  bool met_time() const { return met_time_; }
  bool met_compile_context() const { return met_compile_context_; }
  bool met_user_metadata() const { return met_user_metadata_; }
  const std::map<std::string, std::uint64_t>& left_out() const { return left_out_; }  // by their `action`

 private:
  std::optional<trace::RecordedEvent> read_event(PickleValue dict);

  SnapshotSource& source_;
  SnapshotStacks& stacks_;
  Fields fields_;
  Words actions_;
  bool met_time_ = false;
  bool met_compile_context_ = false;
  bool met_user_metadata_ = false;
  std::map<std::string, std::uint64_t> left_out_;
};

}  // namespace ullage::read
