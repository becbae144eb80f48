// SPDX-License-Identifier: Apache-2.0
#include "recorded.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ullage::sim {
namespace record = trace::record;

void Recorder::heard(const AllocatorEvent& event) {
  using Action = AllocatorEvent::Action;
  const auto add = [&](auto what) { events_.push_back({what, std::nullopt, {}}); };
  switch (event.action) {
    case Action::Allocated:
      return add(record::Allocation{event.address, event.bytes, event.stream});
    case Action::FreeRequested:
      return add(record::FreeRequest{event.address, event.bytes, event.stream});
    case Action::FreeCompleted:
      return add(record::Free{event.address, event.bytes, event.stream});
    case Action::SegmentAllocated:
      return add(record::SegmentAllocation{event.address, event.bytes, event.stream});
    case Action::SegmentFreed:
      return add(record::SegmentFree{event.address, event.bytes, event.stream});
    case Action::SegmentMapped:
      return add(record::SegmentMap{event.address, event.bytes, event.stream});
    case Action::SegmentUnmapped:
      return add(record::SegmentUnmap{event.address, event.bytes, event.stream});
    case Action::OutOfMemory:
      return add(record::OutOfMemory{event.bytes, event.device_free, event.stream});
  }
}

trace::DeviceRecording Recorder::recording(const CachingAllocator& allocator, std::size_t lost) const {
  trace::DeviceRecording recorded;
  recorded.events.assign(events_.begin() + static_cast<std::ptrdiff_t>(lost), events_.end());
  for (const CachingAllocator::BlockView& view : allocator.blocks()) {
    if (view.first_of_segment) {
      trace::Segment segment;
      segment.address = view.address;
      segment.stream = view.stream;
      segment.small = view.small;
      segment.expandable = view.expandable;
      recorded.segments.push_back(segment);
    }
    trace::Segment& segment = recorded.segments.back();
    segment.size += view.size;
    const auto state = view.live      ? trace::Block::State::Active
                       : view.pending ? trace::Block::State::PendingFree
                                      : trace::Block::State::Inactive;
    segment.blocks.push_back({view.address, view.size, view.requested, state, {}});
  }
  return recorded;
}

trace::Recording recording_of(const trace::DeviceRecording& device, const CachingSettings& settings) {
  trace::Recording recording;
  recording.layout = trace::SnapshotLayout::D;
  recording.devices.push_back(device);
  trace::RecordedSettings& recorded = recording.settings.emplace();
  recorded.max_split = settings.max_split;
  recorded.expandable_segments = settings.expandable_segments;
  recorded.garbage_collection_threshold = settings.garbage_collection_threshold;
  for (std::size_t at = 0; at < settings.roundup_power2_divisions.size(); ++at)
    recorded.roundup_power2_divisions.emplace_back(1ull << at, settings.roundup_power2_divisions[at]);
  return recording;
}

namespace {

void read_event(std::istringstream& line, trace::DeviceRecording& device) {
  std::string action;
  Address at;
  Bytes bytes;
  trace::StreamId stream;
  line >> action >> at.value >> bytes.count >> stream.value;
  const auto add = [&](auto what) { device.events.push_back({what, std::nullopt, {}}); };
  if (action == "alloc") return add(record::Allocation{at, bytes, stream});
  if (action == "free_requested") return add(record::FreeRequest{at, bytes, stream});
  if (action == "free_completed") return add(record::Free{at, bytes, stream});
  if (action == "segment_alloc") return add(record::SegmentAllocation{at, bytes, stream});
  if (action == "segment_free") return add(record::SegmentFree{at, bytes, stream});
  ADD_FAILURE() << "unknown action " << action;
}

}  // namespace

trace::Recording read_recorded_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  trace::Recording recording;
  trace::DeviceRecording device;
  for (std::string text; std::getline(in, text);) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "layout") {
      std::string name;
      line >> name;
      recording.layout = name == "D" ? trace::SnapshotLayout::D : trace::SnapshotLayout::B;
    } else if (kind == "segment") {
      trace::Segment segment;
      std::string pool;
      line >> segment.address.value >> segment.size.count >> segment.stream.value >> pool;
      segment.small = pool == "small";
      device.segments.push_back(segment);
    } else if (kind == "block") {
      trace::Block block;
      std::string state;
      line >> block.address.value >> block.size.count >> block.requested.count >> state;
      block.state = state == "live" ? trace::Block::State::Active : trace::Block::State::Inactive;
      device.segments.back().blocks.push_back(block);
    } else {
      EXPECT_EQ(kind, "event");
      read_event(line, device);
    }
    EXPECT_FALSE(line.fail()) << text;
  }
  recording.devices.push_back(device);
  return recording;
}

}  // namespace ullage::sim
