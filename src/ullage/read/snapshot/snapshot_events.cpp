// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot_events.h"

#include <algorithm>

namespace ullage::read {
namespace {

enum EventField {
  kEventAction,
  kEventAddress,
  kEventDeviceFree,
  kEventSize,
  kEventStream,
  kEventTime,
  kEventFrames,
  kEventCompileContext,
  kEventUserMetadata
};

// In the order of actions_.
enum Action {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot
};

// How many kinds of unknown events are counted by name. Once that many were met, every further unknown event counts as
// "other", even if its kind was met before.
constexpr std::size_t kKindsLeftOut = 16;

decltype(trace::RecordedEvent::what) at_address(Action action, Address address, Bytes bytes, trace::StreamId stream) {
  switch (action) {
    case kAlloc:
      return trace::record::Allocation{address, bytes, stream};
    case kFreeRequested:
      return trace::record::FreeRequest{address, bytes, stream};
    case kFreeCompleted:
      return trace::record::Free{address, bytes, stream};
    case kSegmentAlloc:
      return trace::record::SegmentAllocation{address, bytes, stream};
    case kSegmentFree:
      return trace::record::SegmentFree{address, bytes, stream};
    case kSegmentMap:
      return trace::record::SegmentMap{address, bytes, stream};
    default:
      return trace::record::SegmentUnmap{address, bytes, stream};
  }
}

}  // namespace

SnapshotEvents::SnapshotEvents(SnapshotSource& source, SnapshotStacks& stacks)
    : source_(source),
      stacks_(stacks),
      fields_(
          {"action", "addr", "device_free", "size", "stream", "time_us", "frames", "compile_context", "user_metadata"}),
      actions_({"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
                "segment_unmap", "oom", "snapshot"}) {}

std::vector<trace::RecordedEvent> SnapshotEvents::read(PickleValue list) {
  std::vector<trace::RecordedEvent> events;
  if (is_missing(list)) return events;
  if (list.kind() != PickleValue::Kind::List && list.kind() != PickleValue::Kind::Tuple) {
    return source_.fail(list, "the events of a device are not a list"), events;
  }
  const auto items = source_.pickle.items(list);
  events.reserve(std::min<std::uint64_t>(items.size(), source_.records_left()));
  for (const PickleValue one : items) {
    if (auto event = read_event(one)) events.push_back(*event);
    if (source_.failed()) break;
  }
  return events;
}

std::optional<trace::RecordedEvent> SnapshotEvents::read_event(PickleValue dict) {
  fields_.read(source_, dict, "an event");
  if (!source_.count_record(dict)) return std::nullopt;
  const std::size_t action = actions_.find(source_.pickle, fields_[kEventAction]);
  if (action == actions_.size()) {
    if (fields_[kEventAction].kind() != PickleValue::Kind::String) {
      return source_.fail(dict, "the action of an event is not a string"), std::nullopt;
    }
    ++left_out_[left_out_.size() < kKindsLeftOut ? source_.text(fields_[kEventAction]) : std::string("other")];
    return std::nullopt;
  }
  trace::RecordedEvent event;
  const Bytes bytes = source_.bytes(fields_[kEventSize], "size of an event", dict);
  const trace::StreamId stream{source_.handle(fields_[kEventStream], "stream of an event", dict)};
  if (action == kOom) {
    // Older versions of torch wrote the free bytes as addr.
    const PickleValue free = fields_.has(kEventDeviceFree) ? fields_[kEventDeviceFree] : fields_[kEventAddress];
    event.what = trace::record::OutOfMemory{bytes, source_.bytes(free, "device_free of an oom event", dict), stream};
  } else if (action == kSnapshot) {
    event.what = trace::record::SnapshotTaken{bytes};
  } else {
    const Address address = source_.address(fields_[kEventAddress], "addr of an event", dict);
    source_.check_range(address, bytes, "an event", dict);
    event.what = at_address(Action(action), address, bytes, stream);
  }
  if (fields_.has(kEventTime))
    event.at = trace::Microseconds{source_.integer(fields_[kEventTime], "time_us of an event", dict)};
  event.stack = stacks_.stack(fields_[kEventFrames]);
  met_time_ |= fields_.has(kEventTime);
  met_compile_context_ |= fields_.has(kEventCompileContext);
  met_user_metadata_ |= fields_.has(kEventUserMetadata);
  return event;
}

}  // namespace ullage::read
