// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot_settings.h"

#include <charconv>
#include <limits>

namespace ullage::read {
namespace {

enum SettingField { kText, kMaxSplit, kThreshold, kExpandable, kRoundup, kStreamReuse };
enum AnnotationField { kStage, kName, kDevice, kTime };

// {"1": 0, "2": 0, ... "32768": 4}: keys are intervals in MiB.
void read_roundup(SnapshotSource& source, PickleValue dict, trace::RecordedSettings& settings) {
  const auto items = source.pickle.items(dict);
  if (dict.kind() != PickleValue::Kind::Dict || items.size() / 2 > source.limits.keys) {
    return source.fail(dict, "roundup_power2_divisions is no dict of intervals");
  }
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view interval = source.pickle.string(items[i]);
    std::uint64_t mib = 0;
    const auto [end, error] = std::from_chars(interval.data(), interval.data() + interval.size(), mib);
    const auto divisions = source.pickle.unsigned_integer(items[i + 1]);
    if (error != std::errc{} || end != interval.data() + interval.size() || !divisions) {
      return source.fail(dict, "roundup_power2_divisions holds what is no interval or no number of divisions");
    }
    settings.roundup_power2_divisions.emplace_back(mib, *divisions);
  }
}

}  // namespace

SnapshotSettings read_settings(SnapshotSource& source, PickleValue dict) {
  Fields fields({"PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold", "expandable_segments",
                 "roundup_power2_divisions", "graph_capture_record_stream_reuse"});
  fields.read(source, dict, "allocator_settings");
  SnapshotSettings made;
  if (source.failed()) return made;
  made.settings.text = source.text(fields[kText]);
  made.has_stream_reuse = fields.has(kStreamReuse);
  if (!is_missing(fields[kMaxSplit])) {
    const std::int64_t most = source.integer(fields[kMaxSplit], "max_split_size", dict);
    // -1, and the largest number in some versions: no limit.
    if (most >= 0 && most != std::numeric_limits<std::int64_t>::max()) {
      made.settings.max_split = Bytes{std::uint64_t(most)};
    }
  }
  if (!is_missing(fields[kThreshold])) {
    const auto threshold = source.pickle.number(fields[kThreshold]);
    if (!threshold || !(*threshold >= 0 && *threshold <= 1)) {
      return source.fail(dict, "garbage_collection_threshold is no number from 0 to 1"), made;
    }
    made.settings.garbage_collection_threshold = *threshold;
  }
  made.settings.expandable_segments = source.flag(fields[kExpandable]);
  if (!is_missing(fields[kRoundup])) read_roundup(source, fields[kRoundup], made.settings);
  return made;
}

std::vector<trace::Annotation> read_annotations(SnapshotSource& source, PickleValue list) {
  std::vector<trace::Annotation> annotations;
  if (is_missing(list)) return annotations;
  if (list.kind() != PickleValue::Kind::List) return source.fail(list, "external_annotations is no list"), annotations;
  Fields fields({"stage", "name", "device", "time_us"});
  for (const PickleValue one : source.pickle.items(list)) {
    fields.read(source, one, "an annotation");
    if (!source.count_record(one)) break;
    annotations.push_back({.start = source.pickle.string(fields[kStage]) == "START",
                           .name = source.text(fields[kName]),
                           .device = int(source.device(fields[kDevice], "device of an annotation", one)),
                           .at = {source.integer(fields[kTime], "time_us of an annotation", one)}});
  }
  return annotations;
}

}  // namespace ullage::read
