// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/reconstruct.h"

#include "ullage/base/sizes.h"
#include "ullage/trace/recording/inconsistencies.h"

#include <algorithm>
#include <unordered_map>

namespace ullage::trace {
namespace {

// No machine has this much, so a larger sum shows that the file is damaged. Admitted sizes add up to at most this, so
// no sum of them overflows.
constexpr Bytes kMostInFile{1ull << 62};

std::string text(Address address) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  std::uint64_t rest = address.value;
  do {
    digits += kDigits[rest % 16];
    rest /= 16;
  } while (rest != 0);
  digits += "x0";
  return {digits.rbegin(), digits.rend()};
}

// Admits sizes from a file while their sum is at most kMostInFile. A size that would exceed it counts as zero.
class Admission final {
 public:
  explicit Admission(Inconsistencies& wrong) : wrong_(wrong) {}
  Bytes admit(Bytes bytes, EventId event) {
    if (bytes <= kMostInFile - sum_) {
      sum_ += bytes;
      return bytes;
    }
    wrong_.add("sizes that cannot be", event, [&] {
      return std::to_string(bytes.count) + " bytes, " + std::to_string(sum_.count) + " before: counted as none";
    });
    return {};
  }

 private:
  Inconsistencies& wrong_;
  Bytes sum_;
};

// Follows the events forwards. A block that is freed without a recorded allocation existed before the first event.
class Reconstruction final {
 public:
  Reconstruction(const DeviceRecording& recorded, const Recording& all) : recorded_(recorded), admitted_(wrong_) {
    trace_.device = recorded.device;
    trace_.events.reserve(recorded.events.size());
    trace_.storages.reserve(recorded.events.size() / 2);
    std::ranges::copy_if(all.annotations, std::back_inserter(trace_.annotations),
                         [&](const auto& one) { return one.device == int(recorded.device); });
  }

  Trace run() {
    for (const RecordedEvent& one : recorded_.events) {
      const EventId now = trace_.end();
      trace_.events.push_back({event::Mark{}, one.at, one.stack});
      std::visit([&](const auto& what) { add(what, now, one.stack); }, one.what);
    }
    add_blocks_at_end();
    finish_deaths();
    work_out_what_was_before();
    trace_.inconsistencies = wrong_.take();
    return std::move(trace_);
  }

 private:
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  static constexpr EventId kNever{UINT64_MAX};  // until the number of events is known

  Storage& storage(std::uint64_t index) { return trace_.storages[index]; }

  void set_event(EventId now, auto what) { trace_.events[now.value].what = what; }

  std::uint64_t add_storage(Address address, Bytes bytes, StreamId stream, StackId stack, EventId born, bool before) {
    trace_.storages.push_back({bytes, address, stream, stack, kNoOp, born, kNever, kNever, before});
    return trace_.storages.size() - 1;
  }

  void die(std::uint64_t index, EventId now) {
    Storage& gone = storage(index);
    gone.died = now;
    gone.tensor_died = std::min(gone.tensor_died, now);
  }

  void add(const record::Allocation& what, EventId now, StackId stack) {
    const Bytes bytes = admitted_.admit(what.bytes, now);
    std::uint64_t& here = holders_.try_emplace(what.address.value, kNobody).first->second;
    if (here != kNobody) {
      wrong_.add("allocated where a storage is live", now, [&] {
        return text(what.address) + ", of event " + std::to_string(storage(here).born.value) + ": taken as freed now";
      });
      die(here, now);
    }
    here = add_storage(what.address, bytes, what.stream, stack, now, false);
    set_event(now, event::Allocation{{here}});
  }

  // The storage that is freed at this address, or kNobody if it is free already.
  std::uint64_t holder(const auto& what, EventId now) {
    const auto placed =
        holders_.try_emplace(what.address.value, kNobody);  // clang 14: no structured bindings in lambdas
    const auto found = placed.first;
    const bool unseen = placed.second;
    if (unseen) {
      found->second = add_storage(what.address, admitted_.admit(what.bytes, now), what.stream, {}, {}, true);
    } else if (found->second == kNobody) {
      wrong_.add("freed twice", now, [&] { return text(what.address); });
    } else if (storage(found->second).bytes != what.bytes) {
      wrong_.add("freed with another size", now, [&] {
        return text(what.address) + ", " + std::to_string(what.bytes.count) + " bytes, allocated " +
               std::to_string(storage(found->second).bytes.count);
      });
    }
    return found->second;
  }

  void add(const record::FreeRequest& what, EventId now, StackId) {
    const std::uint64_t who = holder(what, now);
    if (who == kNobody) return;
    if (storage(who).tensor_died != kNever) {
      wrong_.add("freed twice", now, [&] { return text(what.address) + ", requested before"; });
      return;
    }
    storage(who).tensor_died = now;
    set_event(now, event::FreeRequest{{who}});
  }

  void add(const record::Free& what, EventId now, StackId) {
    const std::uint64_t who = holder(what, now);
    if (who == kNobody) return;
    die(who, now);
    holders_[what.address.value] = kNobody;
    set_event(now, event::Free{{who}});
  }

  void add_reserved(bool more, Address address, Bytes recorded, EventId now) {
    const Bytes bytes = admitted_.admit(recorded, now);
    reserved_net_ += more ? std::int64_t(bytes.count) : -std::int64_t(bytes.count);
    reserved_lowest_ = std::min(reserved_lowest_, reserved_net_);
    if (more) {
      set_event(now, event::ReservedMore{address, bytes});
    } else {
      set_event(now, event::ReservedLess{address, bytes});
    }
  }
  void add(const record::SegmentAllocation& what, EventId now, StackId) {
    add_reserved(true, what.address, what.bytes, now);
  }
  void add(const record::SegmentMap& what, EventId now, StackId) { add_reserved(true, what.address, what.bytes, now); }
  void add(const record::SegmentFree& what, EventId now, StackId) {
    add_reserved(false, what.address, what.bytes, now);
  }
  void add(const record::SegmentUnmap& what, EventId now, StackId) {
    add_reserved(false, what.address, what.bytes, now);
  }
  void add(const record::OutOfMemory& what, EventId now, StackId) {
    set_event(now, event::OutOfMemory{what.requested, what.device_free});
  }
  void add(const record::SnapshotTaken&, EventId, StackId) {}

  void add_blocks_at_end() {
    for (const Segment& segment : recorded_.segments) {
      for (const Block& block : segment.blocks) {
        if (block.state != Block::State::Inactive) add_block_at_end(block, segment.stream);
      }
    }
  }

  void add_block_at_end(const Block& block, StreamId stream) {
    const auto placed =
        holders_.try_emplace(block.address.value, kNobody);  // clang 14: no structured bindings in lambdas
    const auto found = placed.first;
    const bool unseen = placed.second;
    if (unseen) {
      const Bytes bytes = admitted_.admit(block.requested, trace_.end());
      found->second = add_storage(block.address, bytes, stream, block.stack, {}, true);
      if (block.state == Block::State::PendingFree) storage(found->second).tensor_died = EventId{};
    } else if (found->second == kNobody) {
      wrong_.add("live at the end, free by the events", [&] {
        return text(block.address) + ", " + std::to_string(block.requested.count) + " bytes: not counted";
      });
    } else if (storage(found->second).bytes != block.requested) {
      wrong_.add("another size at the end", [&] {
        return text(block.address) + ", " + std::to_string(block.requested.count) + " bytes, allocated " +
               std::to_string(storage(found->second).bytes.count);
      });
    }
    if (found->second != kNobody) ++blocks_at_end_;
  }

  void finish_deaths() {
    const EventId end = trace_.end();
    std::uint64_t live_at_end = 0;
    for (Storage& one : trace_.storages) {
      if (one.tensor_died == kNever) one.tensor_died = end;
      if (one.died != kNever) continue;
      one.died = end;
      ++live_at_end;
    }
    if (live_at_end == blocks_at_end_) return;  // blocks without a storage were reported by add_block_at_end()
    wrong_.add("live by the events, no block at the end", [&] {
      return std::to_string(live_at_end) + " storages, " + std::to_string(blocks_at_end_) + " blocks: counted as live";
    });
  }

  void work_out_what_was_before() {
    std::uint64_t count = 0;
    for (const Storage& one : trace_.storages) {
      if (!one.from_before) continue;
      trace_.live_before += one.bytes;
      ++count;
    }
    Bytes at_end;
    for (const Segment& segment : recorded_.segments) at_end += admitted_.admit(segment.size, trace_.end());
    // The pool held at least this much, or its level would go below zero later.
    const Bytes least{std::uint64_t(-reserved_lowest_)};
    const std::int64_t before = std::int64_t(at_end.count) - reserved_net_;
    trace_.reserved_before = std::max(least, Bytes{std::uint64_t(std::max<std::int64_t>(before, 0))});
    if (before < std::int64_t(least.count)) {
      wrong_.add("segments do not add up", [&] {
        return std::to_string(at_end.count) + " bytes at the end, the events reserve " + std::to_string(reserved_net_) +
               " bytes, at the least " + std::to_string(reserved_lowest_);
      });
    }
    if (trace_.live_before > trace_.reserved_before && has_segments()) {
      wrong_.add("more was live before the first event than reserved", [&] {
        return std::to_string(trace_.live_before.count) + " bytes in " + std::to_string(count) +
               " storages, reserved " + std::to_string(trace_.reserved_before.count);
      });
    }
    trace_.complete = !trace_.events.empty() && count == 0 && trace_.reserved_before == Bytes{};
  }

  bool has_segments() const { return !recorded_.segments.empty() || reserved_lowest_ != 0 || reserved_net_ != 0; }

  const DeviceRecording& recorded_;
  Trace trace_;
  Inconsistencies wrong_;
  Admission admitted_;
  // For every address that was allocated or freed, or that has a live block at the end: the storage there, or kNobody
  // if it was freed. Entries are never removed.
  std::unordered_map<std::uint64_t, std::uint64_t> holders_;
  std::uint64_t blocks_at_end_ = 0;
  std::int64_t reserved_net_ = 0;
  std::int64_t reserved_lowest_ = 0;
};

}  // namespace

Trace reconstruct(const DeviceRecording& recorded, const Recording& all) { return Reconstruction(recorded, all).run(); }

}  // namespace ullage::trace
