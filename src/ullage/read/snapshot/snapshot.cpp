// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot.h"

#include "ullage/read/pickle/pickle.h"
#include "ullage/read/snapshot/snapshot_checks.h"
#include "ullage/read/snapshot/snapshot_events.h"
#include "ullage/read/snapshot/snapshot_fields.h"
#include "ullage/read/snapshot/snapshot_segments.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

namespace ullage::read {
namespace {

using trace::SnapshotLayout;

enum TopField { kSegments, kTraces, kSettings, kAnnotations };

enum SettingField {
  kSettingText,
  kSettingMaxSplit,
  kSettingThreshold,
  kSettingExpandable,
  kSettingRoundup,
  kSettingStreamReuse
};
enum AnnotationField { kAnnotationStage, kAnnotationName, kAnnotationDevice, kAnnotationTime };

// Reads {"1": 0, "2": 0, ... "32768": 4}: keys are intervals in MiB, values are numbers of divisions.
void read_roundup(SnapshotSource& source, PickleValue dict, trace::RecordedSettings& settings) {
  const auto items = source.pickle.items(dict);
  if (dict.kind() != PickleValue::Kind::Dict || items.size() / 2 > source.limits.keys) {
    return source.fail(dict, "roundup_power2_divisions is not a dict of intervals");
  }
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view interval = source.pickle.string(items[i]);
    std::uint64_t mib = 0;
    const auto [end, error] = std::from_chars(interval.data(), interval.data() + interval.size(), mib);
    const auto divisions = source.pickle.unsigned_integer(items[i + 1]);
    if (error != std::errc{} || end != interval.data() + interval.size() || !divisions) {
      return source.fail(dict, "roundup_power2_divisions has an entry that is not an interval and its divisions");
    }
    settings.roundup_power2_divisions.emplace_back(mib, *divisions);
  }
}

struct SnapshotSettings {
  trace::RecordedSettings settings;
  bool has_stream_reuse = false;  // graph_capture_record_stream_reuse: torch 2.9 and later
};

SnapshotSettings read_settings(SnapshotSource& source, PickleValue dict) {
  Fields fields({"PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold", "expandable_segments",
                 "roundup_power2_divisions", "graph_capture_record_stream_reuse"});
  fields.read(source, dict, "allocator_settings");
  SnapshotSettings made;
  if (source.failed()) return made;
  made.settings.text = source.text(fields[kSettingText]);
  made.has_stream_reuse = fields.has(kSettingStreamReuse);
  if (!is_missing(fields[kSettingMaxSplit])) {
    const std::int64_t most = source.integer(fields[kSettingMaxSplit], "max_split_size", dict);
    // -1 (in some versions the largest number) means no limit.
    if (most >= 0 && most != std::numeric_limits<std::int64_t>::max()) {
      made.settings.max_split = Bytes{std::uint64_t(most)};
    }
  }
  if (!is_missing(fields[kSettingThreshold])) {
    const auto threshold = source.pickle.number(fields[kSettingThreshold]);
    if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
      return source.fail(dict, "garbage_collection_threshold is not a number from 0 to 1"), made;
    }
    made.settings.garbage_collection_threshold = *threshold;
  }
  made.settings.expandable_segments = source.flag(fields[kSettingExpandable]);
  if (!is_missing(fields[kSettingRoundup])) read_roundup(source, fields[kSettingRoundup], made.settings);
  return made;
}

std::vector<trace::Annotation> read_annotations(SnapshotSource& source, PickleValue list) {
  std::vector<trace::Annotation> annotations;
  if (is_missing(list)) return annotations;
  if (list.kind() != PickleValue::Kind::List)
    return source.fail(list, "external_annotations is not a list"), annotations;
  Fields fields({"stage", "name", "device", "time_us"});
  for (const PickleValue one : source.pickle.items(list)) {
    fields.read(source, one, "an annotation");
    if (!source.count_record(one)) break;
    annotations.push_back({.start = source.pickle.string(fields[kAnnotationStage]) == "START",
                           .name = source.text(fields[kAnnotationName]),
                           .device = int(source.device(fields[kAnnotationDevice], "device of an annotation", one)),
                           .at = {source.integer(fields[kAnnotationTime], "time_us of an annotation", one)}});
  }
  return annotations;
}

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
  void find_layout(bool is_list);
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
  find_layout(is_list);
  finish();
  return std::move(made_);
}

void Reader::read_segments(PickleValue list) {
  if (source_.failed() || is_missing(list)) return;
  if (list.kind() != PickleValue::Kind::List) return source_.fail(list, "segments is not a list");
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
    return source_.fail(
        list, "device_traces is not a list of at most " + std::to_string(source_.limits.devices) + " devices");
  }
  for (std::size_t device = 0; device < traces.size() && !source_.failed(); ++device) {
    auto events = events_.read(traces[device]);
    if (!events.empty()) devices_[unsigned(device)].events = std::move(events);
  }
}

void Reader::find_layout(bool is_list) {
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

// Returns the torch versions that write such a file. The dates are those of changes in pytorch/pytorch. Times came with
// the history of December 2023, and allocator_settings with #119404 of February 2024. In 2025 came compile_context
// (#152707, May), graph_capture_record_stream_reuse (#158352, August) and user_metadata (October).
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
                                    " bytes after the end of the pickle were not read");
  }
  made_.torch = torch();
}

}  // namespace

Result<trace::Recording> read_snapshot(std::span<const std::byte> pickle, const std::string& name) {
  ULLAGE_TRY_VALUE(const auto parsed, Pickle::parse(pickle, name));
  return Reader(parsed, name).read();
}

}  // namespace ullage::read
