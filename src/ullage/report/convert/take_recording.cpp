// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/take_recording.h"

#include "ullage/store/address_space.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ullage::report {
namespace {

constexpr Address kBase{0x7f00'0000'0000};
constexpr Bytes kSpace = 1_GiB * 1024 * 256;  // viewers store addresses in numbers that are exact up to 2^53
constexpr Bytes kUnit{512};                   // sizes of a snapshot's blocks are multiples of this

class TakeRecording final {
 public:
  TakeRecording(const trace::Take& take, unsigned device)
      : take_(take), places_(take.trace.storages.size()), space_({kBase, kSpace}), end_(kBase) {
    made_.device = device;
  }

  trace::DeviceRecording make() {
    const trace::Trace& trace = take_.trace;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
      if (trace.storages[i].from_before) place(StorageId{i});
    }
    for (const trace::Event& event : trace.events) add(event);
    add_segment();
    return std::move(made_);
  }

 private:
  static Bytes size_of(const trace::Storage& storage) { return round_up(std::max(storage.bytes, 1_B), kUnit); }

  void place(StorageId id) {
    const trace::Storage& storage = take_.trace.storages[id.value];
    if (storage.bytes > kSpace) return;
    places_[id.value] = space_.take(size_of(storage), kUnit);
    if (places_[id.value]) end_ = std::max(end_, *places_[id.value] + size_of(storage));
  }

  void add(const trace::Event& event) {
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what)) {
      place(born->storage);
      const Bytes bytes = take_.trace.storages[born->storage.value].bytes;
      if (const auto& at = places_[born->storage.value]) push(trace::record::Allocation{*at, bytes, {}}, event);
    } else if (const auto* died = std::get_if<trace::event::Free>(&event.what)) {
      const trace::Storage& storage = take_.trace.storages[died->storage.value];
      const auto& at = places_[died->storage.value];
      if (!at) return;
      push(trace::record::FreeRequest{*at, storage.bytes, {}}, event);
      push(trace::record::Free{*at, storage.bytes, {}}, event);
      space_.give({*at, size_of(storage)});
    } else if (const auto* failed = std::get_if<trace::event::OutOfMemory>(&event.what)) {
      push(trace::record::OutOfMemory{failed->requested, failed->device_free, {}}, event);
    }
  }

  template <class What>
  void push(What what, const trace::Event& event) {
    made_.events.push_back({std::move(what), event.at, event.stack});
  }

  // Adds one segment: what is live at the end, and the gaps between.
  void add_segment() {
    if (end_ == kBase) return;
    trace::Segment segment;
    segment.address = kBase, segment.size = end_ - kBase;
    std::vector<StorageId> live;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] && take_.trace.storages[i].died >= take_.trace.end()) live.push_back(StorageId{i});
    }
    std::sort(live.begin(), live.end(), [&](StorageId a, StorageId b) { return places_[a.value] < places_[b.value]; });
    Address at = kBase;
    const auto add_gap = [&](Address until) {
      if (at < until) segment.blocks.push_back({at, until - at, {}, trace::Block::State::Inactive, {}});
      at = until;
    };
    for (const StorageId id : live) {
      const trace::Storage& storage = take_.trace.storages[id.value];
      add_gap(*places_[id.value]);
      segment.blocks.push_back({at, size_of(storage), storage.bytes, trace::Block::State::Active, storage.stack});
      segment.allocated += size_of(storage), segment.requested += storage.bytes;
      at = at + size_of(storage);
    }
    add_gap(end_);
    segment.active = segment.allocated;
    made_.segments.push_back(std::move(segment));
  }

  const trace::Take& take_;
  trace::DeviceRecording made_;
  std::vector<std::optional<Address>> places_;  // by StorageId
  store::AddressSpace space_;
  Address end_;  // the end of all addresses ever used
};

// Copies the stacks of one take into those of the recording.
class StackMover final {
 public:
  StackMover(const trace::Stacks& from, trace::Stacks& to) : from_(from), to_(to), moved_(from.stack_count()) {}

  trace::StackId operator()(trace::StackId id) {
    if (id == trace::StackId{}) return id;
    std::optional<trace::StackId>& moved = moved_[id.value];
    if (!moved) {
      std::vector<trace::FrameId> frames;
      for (const trace::FrameId frame : from_.frames(id)) frames.push_back(to_.add(from_.frame(frame)));
      moved = to_.add(frames);
    }
    return *moved;
  }

 private:
  const trace::Stacks& from_;
  trace::Stacks& to_;
  std::vector<std::optional<trace::StackId>> moved_;
};

}  // namespace

trace::Recording recording_of(const trace::UnderstoodFile& file) {
  trace::Recording recording;
  recording.torch = file.file.torch;
  for (std::size_t i = 0; i < file.file.takes.size(); ++i) {
    trace::DeviceRecording made = TakeRecording(file.file.takes[i], static_cast<unsigned>(i)).make();
    StackMover moved(file.meanings[i].stacks, recording.stacks);
    for (trace::RecordedEvent& event : made.events) event.stack = moved(event.stack);
    for (trace::Segment& segment : made.segments) {
      for (trace::Block& block : segment.blocks) block.stack = moved(block.stack);
    }
    recording.devices.push_back(std::move(made));
  }
  return recording;
}

}  // namespace ullage::report
