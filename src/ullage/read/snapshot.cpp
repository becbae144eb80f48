// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot.h"

#include "ullage/read/pickle.h"
#include "ullage/read/snapshot_checks.h"
#include "ullage/read/snapshot_events.h"
#include "ullage/read/snapshot_fields.h"
#include "ullage/read/snapshot_segments.h"
#include "ullage/read/snapshot_settings.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ullage::read {
namespace {

using trace::SnapshotLayout;

enum TopField { kSegments, kTraces, kSettings, kAnnotations };

class Reader final {
 public:
  Reader(const Pickle& pickle, const std::string& name)
      : source_(pickle, name, {}),
        top_({"segments", "device_traces", "allocator_settings", "external_annotations"}),
        stacks_(source_, made_.stacks),
        segments_(source_, stacks_),
        events_(source_, stacks_) {}

  Result<trace::Recording> read();

 private:
  void read_segments(PickleValue list);
  void read_traces(PickleValue list);
  void settle_layout(bool is_list);
  std::string torch() const;
  void finish();

  SnapshotSource source_;
  trace::Recording made_;
  Fields top_;
  SnapshotStacks stacks_;
  SnapshotSegments segments_;
  SnapshotEvents events_;
  std::map<unsigned, trace::DeviceRecording> devices_;
  bool has_stream_reuse_ = false;
};

Result<trace::Recording> Reader::read() {
  const PickleValue root = source_.pickle.root();
  const bool is_list = root.kind() == PickleValue::Kind::List;
  if (is_list) {
    read_segments(root);
  } else {
    top_.read(source_, root, "the pickle");
    if (!top_.has(kSegments) && !top_.has(kTraces)) {
      source_.fail(root, "a pickle, but no memory snapshot: it has neither segments nor device_traces");
    }
    read_segments(top_[kSegments]);
    read_traces(top_[kTraces]);
    if (!source_.failed() && !is_missing(top_[kSettings])) {
      const SnapshotSettings settings = read_settings(source_, top_[kSettings]);
      made_.settings = settings.settings;
      has_stream_reuse_ = settings.has_stream_reuse;
    }
    if (!source_.failed()) made_.annotations = read_annotations(source_, top_[kAnnotations]);
  }
  if (source_.failed()) return *source_.error();
  settle_layout(is_list);
  finish();
  return std::move(made_);
}

void Reader::read_segments(PickleValue list) {
  if (source_.failed() || is_missing(list)) return;
  if (list.kind() != PickleValue::Kind::List) return source_.fail(list, "segments is no list");
  for (const PickleValue one : source_.pickle.items(list)) {
    auto [device, segment] = segments_.read(one);
    if (source_.failed()) return;
    devices_[device].segments.push_back(std::move(segment));
  }
}

void Reader::read_traces(PickleValue list) {
  if (source_.failed() || is_missing(list)) return;
  const auto traces = source_.pickle.items(list);
  if (list.kind() != PickleValue::Kind::List || traces.size() > source_.limits.devices) {
    return source_.fail(list,
                        "device_traces is no list of at most " + std::to_string(source_.limits.devices) + " devices");
  }
  for (std::size_t device = 0; device < traces.size() && !source_.failed(); ++device) {
    auto events = events_.read(traces[device]);
    if (!events.empty()) devices_[unsigned(device)].events = std::move(events);
  }
}

void Reader::settle_layout(bool is_list) {
  if (is_list) {
    made_.layout = SnapshotLayout::SegmentList;
  } else if (top_.has(kAnnotations)) {
    made_.layout = top_.has(kSettings) ? SnapshotLayout::D : SnapshotLayout::X;
  } else if (top_.has(kSettings)) {
    made_.layout = SnapshotLayout::C;
  } else {
    made_.layout = segments_.met_old_blocks() ? SnapshotLayout::A : SnapshotLayout::B;
  }
}

// Which release first wrote what, by the dates of the changes in pytorch/pytorch: times with the history of December
// 2023, allocator_settings #119404 of February 2024, compile_context #152707 of May 2025,
// graph_capture_record_stream_reuse #158352 of August 2025, user_metadata of October 2025.
std::string Reader::torch() const {
  if (events_.met_user_metadata()) return "2.10 or later";
  if (has_stream_reuse_) return "2.9 or later";
  if (events_.met_compile_context()) return "2.8 or later";
  switch (made_.layout) {
    case SnapshotLayout::SegmentList:
      return segments_.met_old_blocks() ? "2.0" : "";
    case SnapshotLayout::A:
      return "2.0";
    case SnapshotLayout::B:
      return events_.met_time() ? "2.2" : made_.devices.empty() ? "" : "2.1";
    case SnapshotLayout::C:
      return "2.3 to 2.5";
    case SnapshotLayout::D:
      return "2.6 or later";
    case SnapshotLayout::X:
      return "";
  }
  return "";
}

void Reader::finish() {
  for (auto& [number, device] : devices_) {
    device.device = number;
    std::ranges::stable_sort(device.segments, {}, &trace::Segment::address);
    made_.devices.push_back(std::move(device));
  }
  made_.inconsistencies = inconsistencies(made_.devices);
  for (const auto& [action, count] : events_.left_out()) {
    made_.inconsistencies.push_back("events of a kind that is not known, \"" + action + "\": " + std::to_string(count) +
                                    " left out");
  }
  if (source_.pickle.end() != source_.pickle.size()) {
    made_.inconsistencies.push_back(std::to_string(source_.pickle.size() - source_.pickle.end()) +
                                    " bytes behind the end of the pickle were not read");
  }
  made_.torch = torch();
}

}  // namespace

Result<trace::Recording> read_snapshot(std::span<const std::byte> pickle, const std::string& name) {
  const auto parsed = Pickle::parse(pickle, name);
  if (!parsed) return parsed.error();
  return Reader(*parsed, name).read();
}

}  // namespace ullage::read
