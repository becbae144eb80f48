// SPDX-License-Identifier: Apache-2.0
#include "recording_builder.h"

#include <algorithm>

namespace ullage::trace {
namespace {
constexpr Bytes kUnit{512};
}

RecordingBuilder::RecordingBuilder() { recording_.devices.push_back({}); }

StackId RecordingBuilder::stack(const std::vector<Frame>& frames) {
  std::vector<FrameId> ids;
  for (const Frame& one : frames) ids.push_back(recording_.stacks.add(one));
  return recording_.stacks.add(ids);
}

void RecordingBuilder::add(RecordedEvent event) {
  now_ += 2;
  if (!event.at) event.at = Microseconds{now_};
  recording_.devices[0].events.push_back(event);
}

Address RecordingBuilder::allocate(Bytes bytes, StackId stack) {
  const Bytes size = round_up(bytes, kUnit);
  std::vector<Address>& again = free_[size.count];
  Address address = next_;
  if (again.empty()) {
    add({record::SegmentAllocation{next_, size, {}}, {}, stack});
    next_ = next_ + size;
  } else {
    address = again.back();
    again.pop_back();
  }
  add({record::Allocation{address, bytes, {}}, {}, stack});
  live_[address] = {bytes, stack};
  return address;
}

void RecordingBuilder::request_free(Address address, StackId stack) {
  live_.at(address).pending = true;
  add({record::FreeRequest{address, live_.at(address).bytes, {}}, {}, stack});
}

void RecordingBuilder::complete_free(Address address, StackId stack) {
  const Bytes bytes = live_.at(address).bytes;
  add({record::Free{address, bytes, {}}, {}, stack});
  free_[round_up(bytes, kUnit).count].push_back(address);
  live_.erase(address);
}

void RecordingBuilder::free(Address address, StackId stack) {
  request_free(address, stack);
  complete_free(address, stack);
}

void RecordingBuilder::out_of_memory(Bytes requested, StackId stack) {
  add({record::OutOfMemory{requested, 1_MiB, {}}, {}, stack});
}

void RecordingBuilder::annotate(const std::string& name, bool start) {
  recording_.annotations.push_back({start, name, 0, {now_ + 1}});
}

Recording RecordingBuilder::recording(std::size_t lost) const {
  Recording file = recording_;
  DeviceRecording& device = file.devices[0];
  for (const RecordedEvent& one : device.events) {
    const auto* taken = std::get_if<record::SegmentAllocation>(&one.what);
    if (taken == nullptr) continue;
    const auto held = live_.find(taken->address);
    Block block{taken->address, taken->bytes, {}, Block::State::Inactive, {}};
    if (held != live_.end()) {
      block.requested = held->second.bytes;
      block.stack = held->second.stack;
      block.state = held->second.pending ? Block::State::PendingFree : Block::State::Active;
    }
    Segment segment;
    segment.address = taken->address;
    segment.size = taken->bytes;
    segment.blocks = {block};
    device.segments.push_back(segment);
  }
  std::ranges::sort(device.segments, {}, &Segment::address);
  device.events.erase(device.events.begin(), device.events.begin() + std::ptrdiff_t(lost));
  return file;
}

}  // namespace ullage::trace
