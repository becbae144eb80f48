// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/convert.h"

#include "ullage/report/convert/pickle_writer.h"
#include "ullage/report/convert/take_recording.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ullage::report {
namespace {

const char* state_name(trace::Block::State state) {
  switch (state) {
    case trace::Block::State::Active:
      return "active_allocated";
    case trace::Block::State::PendingFree:
      return "active_pending_free";
    case trace::Block::State::Inactive:
      break;
  }
  return "inactive";
}

class MemoryVizWriter final {
 public:
  MemoryVizWriter(const trace::Recording& recording, std::ostream& out)
      : recording_(recording),
        pickle_(out),
        frames_(recording.stacks.frame_count()),
        stacks_(recording.stacks.stack_count()) {}

  void write() {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const auto& device : recording_.devices)
      for (const auto& segment : device.segments) write(segment, device.device);
    pickle_.end_list();
    pickle_.text("device_traces");
    write_traces();
    if (recording_.settings) {
      pickle_.text("allocator_settings");
      write(*recording_.settings);
    }
    pickle_.text("external_annotations");
    pickle_.begin_list();
    for (const auto& annotation : recording_.annotations) write(annotation);
    pickle_.end_list();
    pickle_.end_dict();
    pickle_.finish();
  }

 private:
  void number(const char* key, std::uint64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void word(const char* key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  void truth(const char* key, bool value) {
    pickle_.text(key);
    pickle_.boolean(value);
  }

  void write(const trace::Segment& segment, unsigned device) {
    pickle_.begin_dict();
    number("device", device);
    number("address", segment.address.value);
    number("total_size", segment.size.count);
    number("allocated_size", segment.allocated.count);
    number("active_size", segment.active.count);
    number("requested_size", segment.requested.count);
    number("stream", segment.stream.value);
    word("segment_type", segment.small ? "small" : "large");
    pickle_.text("segment_pool_id");
    pickle_.integer(segment.pool.first);
    pickle_.integer(segment.pool.second);
    pickle_.end_pair();
    truth("is_expandable", segment.expandable);
    write_frames(segment.stack);
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const auto& block : segment.blocks) {
      pickle_.begin_dict();
      number("address", block.address.value);
      number("size", block.size.count);
      number("requested_size", block.requested.count);
      word("state", state_name(block.state));
      write_frames(block.stack);
      pickle_.end_dict();
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  // The index in the list is the device's number. So a device that recorded nothing has an empty list if a later device
  // recorded something. Readers list devices in ascending order.
  void write_traces() {
    pickle_.begin_list();
    unsigned next = 0;
    for (const auto& device : recording_.devices) {
      for (; next <= device.device; ++next) {
        pickle_.begin_list();
        if (next == device.device)
          for (const auto& event : device.events) write(event);
        pickle_.end_list();
      }
    }
    pickle_.end_list();
  }

  void write(const trace::RecordedEvent& event) {
    pickle_.begin_dict();
    std::visit([&](const auto& what) { write_what(what); }, event.what);
    if (event.at) {
      pickle_.text("time_us");
      pickle_.integer(event.at->count);
    }
    write_frames(event.stack);
    pickle_.end_dict();
  }

  void write_place(const char* action, Address address, Bytes size, trace::StreamId stream) {
    word("action", action);
    number("addr", address.value);
    number("size", size.count);
    number("stream", stream.value);
  }
  void write_what(const trace::record::Allocation& e) { write_place("alloc", e.address, e.bytes, e.stream); }
  void write_what(const trace::record::FreeRequest& e) { write_place("free_requested", e.address, e.bytes, e.stream); }
  void write_what(const trace::record::Free& e) { write_place("free_completed", e.address, e.bytes, e.stream); }
  void write_what(const trace::record::SegmentAllocation& e) {
    write_place("segment_alloc", e.address, e.bytes, e.stream);
  }
  void write_what(const trace::record::SegmentFree& e) { write_place("segment_free", e.address, e.bytes, e.stream); }
  void write_what(const trace::record::SegmentMap& e) { write_place("segment_map", e.address, e.bytes, e.stream); }
  void write_what(const trace::record::SegmentUnmap& e) { write_place("segment_unmap", e.address, e.bytes, e.stream); }
  // The size of this event is that of the reserved bytes.
  void write_what(const trace::record::SnapshotTaken& e) { write_place("snapshot", {}, e.reserved, {}); }
  void write_what(const trace::record::OutOfMemory& e) {
    word("action", "oom");
    number("device_free", e.device_free.count);
    number("size", e.requested.count);
    number("stream", e.stream.value);
  }

  // Each frame and each list of frames is written once; later uses refer to the same object.
  void write_frames(trace::StackId id) {
    pickle_.text("frames");
    auto& known = stacks_[id.value];
    if (known) return pickle_.again(*known);
    pickle_.begin_list();
    for (const trace::FrameId frame : recording_.stacks.frames(id)) write(frame);
    pickle_.end_list();
    known = pickle_.remember();
  }
  void write(trace::FrameId id) {
    auto& known = frames_[id.value];
    if (known) return pickle_.again(*known);
    const trace::Frame& frame = recording_.stacks.frame(id);
    pickle_.begin_dict();
    word("name", frame.function);
    word("filename", frame.file);
    number("line", frame.line);
    pickle_.end_dict();
    known = pickle_.remember();
  }

  void write(const trace::RecordedSettings& settings) {
    pickle_.begin_dict();
    word("PYTORCH_CUDA_ALLOC_CONF", settings.text);
    pickle_.text("max_split_size");
    settings.max_split ? pickle_.integer(settings.max_split->count) : pickle_.integer(std::int64_t{-1});
    pickle_.text("garbage_collection_threshold");
    pickle_.real(settings.garbage_collection_threshold);
    truth("expandable_segments", settings.expandable_segments);
    pickle_.text("roundup_power2_divisions");
    pickle_.begin_dict();
    for (const auto& [interval, divisions] : settings.roundup_power2_divisions)
      number(std::to_string(interval).c_str(), divisions);
    pickle_.end_dict();
    pickle_.end_dict();
  }

  void write(const trace::Annotation& annotation) {
    pickle_.begin_dict();
    word("stage", annotation.start ? "START" : "END");
    word("name", annotation.name);
    pickle_.text("device");
    pickle_.integer(std::int64_t{annotation.device});
    pickle_.text("time_us");
    pickle_.integer(annotation.at.count);
    pickle_.end_dict();
  }

  const trace::Recording& recording_;
  PickleWriter pickle_;
  std::vector<std::optional<PickleWriter::Memo>> frames_, stacks_;
};

}  // namespace

void write_memory_viz(const trace::Recording& recording, std::ostream& out) { MemoryVizWriter(recording, out).write(); }

Status write_memory_viz(const trace::Input& input, std::ostream& out) {
  if (const auto* recording = std::get_if<trace::Recording>(&input)) {
    write_memory_viz(*recording, out);
  } else if (const auto* file = std::get_if<trace::UnderstoodFile>(&input)) {
    write_memory_viz(recording_of(*file), out);
  } else {
    return Error{Error::Kind::BadArgument, "only a snapshot or a trace can become a memory_viz file",
                 "--convert memory_viz"};
  }
  return success();
}

}  // namespace ullage::report
