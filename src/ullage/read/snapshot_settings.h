// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a snapshot holds besides segments and events: allocator_settings and external_annotations.

#include "ullage/read/snapshot_fields.h"
#include "ullage/trace/recording.h"

#include <optional>
#include <vector>

namespace ullage::read {

struct SnapshotSettings {
  trace::RecordedSettings settings;
  bool has_stream_reuse = false;  // graph_capture_record_stream_reuse: torch 2.9 and later
};
SnapshotSettings read_settings(SnapshotSource& source, PickleValue dict);

std::vector<trace::Annotation> read_annotations(SnapshotSource& source, PickleValue list);

}  // namespace ullage::read
