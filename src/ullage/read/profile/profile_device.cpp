// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile_device.h"

#include "ullage/read/profile/profile_storages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace ullage::read {
namespace {

constexpr int kCpu = 0;  // c10::DeviceType
constexpr std::size_t kMostTold = 20;

trace::Microseconds microseconds(Nanoseconds time) { return {time.count / 1000}; }

class DeviceMaker final {
 public:
  DeviceMaker(const ProfileEvents& events, const OpenSpans& open, std::span<const std::uint32_t> memory)
      : events_(events), open_(open), memory_(memory) {}

  trace::Profile::Device make() {
    const MemoryEvent& first = events_.memory[memory_.front()];
    device_.type = first.device_type;
    device_.index = std::max(first.device, 0);
    trace().device = static_cast<unsigned>(device_.index);
    // The CPU's totals count only from the profiler's start.
    totals_ = std::any_of(memory_.begin(), memory_.end(),
                          [&](auto i) { return events_.memory[i].allocated.value_or(0) > 0; });
    device_.totals = totals_ && device_.type != kCpu;
    device_.addresses = std::all_of(memory_.begin(), memory_.end(), [&](auto i) {
      return events_.memory[i].address || events_.memory[i].out_of_memory;
    });
    find_ops();
    for (const std::uint32_t index : memory_) {
      begin_and_end_ops(events_.memory[index].at);
      add(events_.memory[index], open_.at[index]);
    }
    end_ops(Nanoseconds{INT64_MAX});
    finish();
    return std::move(device_);
  }

 private:
  trace::Trace& trace() { return device_.trace; }
  EventId next_event() { return trace().end(); }

  // Collects the ops that were open at an event, sorted by begin, outer ones first.
  void find_ops() {
    for (const std::uint32_t index : memory_)
      for (std::uint32_t span = open_.at[index].op; span != kNoSpan; span = open_.parent[span]) {
        if (!op_by_span_.try_emplace(span, trace::kNoOp).second) break;  // the ops around it are known, too
        begins_.push_back(span);
      }
    std::sort(begins_.begin(), begins_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Span &x = events_.spans[a], &y = events_.spans[b];
      if (x.begin != y.begin) return x.begin < y.begin;
      return x.end != y.end ? x.end > y.end : a < b;
    });
    for (const std::uint32_t span : begins_) {
      op_by_span_[span] = OpId{trace().ops.size()};
      trace().ops.push_back({events_.texts[events_.spans[span].name], {}});
    }
    ends_ = begins_;
    std::stable_sort(ends_.begin(), ends_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Span &x = events_.spans[a], &y = events_.spans[b];
      return x.end != y.end ? x.end < y.end : x.begin > y.begin;
    });
  }

  // Emits the ops' begins and ends up to `until`. An op that ends just then stays open: it owns an allocation made
  // then.
  void begin_and_end_ops(Nanoseconds until) {
    while (next_begin_ < begins_.size() && events_.spans[begins_[next_begin_]].begin <= until) {
      const std::uint32_t span = begins_[next_begin_++];
      end_ops(events_.spans[span].begin);
      emit(trace::event::OpBegin{op_by_span_[span]}, events_.spans[span].begin, {});
    }
    end_ops(until);
  }
  void end_ops(Nanoseconds before) {
    while (next_end_ < ends_.size() && events_.spans[ends_[next_end_]].end < before) {
      const std::uint32_t span = ends_[next_end_++];
      emit(trace::event::OpEnd{op_by_span_[span]}, events_.spans[span].end, {});
    }
  }

  void add(const MemoryEvent& memory, const OpenSpans::At& open) {
    follow_reserved(memory);
    if (memory.out_of_memory) {
      emit(trace::event::OutOfMemory{{static_cast<std::uint64_t>(memory.bytes)}, {}, false}, memory.at, open.stack);
    } else if (memory.bytes >= 0) {
      allocate(memory, open);
    } else {
      free(memory, open);
    }
    follow_allocated(memory);
  }

  void allocate(const MemoryEvent& memory, const OpenSpans::At& open) {
    const Bytes bytes{static_cast<std::uint64_t>(memory.bytes)};
    const StorageId id{trace().storages.size()};
    if (const auto old = live_.allocate(memory.address, bytes, id)) {
      tell(fmt::format("event {}: {} bytes are allocated at address {}, where {} bytes still stand", next_event().value,
                       bytes.count, memory.address->value, trace().storages[old->value].bytes.count));
      end(*old, memory.at, open.stack);
    }
    trace::Storage storage;
    storage.bytes = bytes;
    storage.address = memory.address.value_or(Address{});
    storage.stack = open.stack;
    storage.op = open.op == kNoSpan ? trace::kNoOp : op_by_span_[open.op];
    storage.born = next_event();
    storage.tensor_died = storage.died = EventId{UINT64_MAX};
    trace().storages.push_back(storage);
    level_ += memory.bytes;
    emit(trace::event::Allocation{id}, memory.at, open.stack);
  }

  void free(const MemoryEvent& memory, const OpenSpans::At& open) {
    const Bytes bytes{static_cast<std::uint64_t>(-memory.bytes)};
    const LiveStorages::Owner owner = live_.free(memory.address, bytes);
    if (std::holds_alternative<LiveStorages::FreedAlready>(owner)) {
      tell(fmt::format("event {}: {} bytes are freed at address {}, which was freed before", next_event().value,
                       bytes.count, memory.address->value));
      emit(trace::event::Mark{}, memory.at, open.stack);
      return;
    }
    if (std::holds_alternative<LiveStorages::NeverSeen>(owner)) {
      const StorageId id = add_from_before(bytes, memory.address.value_or(Address{}));
      end(id, memory.at, open.stack);
      return;
    }
    const StorageId id = std::get<StorageId>(owner);
    const Bytes allocated = trace().storages[id.value].bytes;
    if (allocated != bytes)
      tell(fmt::format("event {}: {} bytes are freed where {} bytes were allocated", next_event().value, bytes.count,
                       allocated.count));
    end(id, memory.at, open.stack);
  }

  StorageId add_from_before(Bytes bytes, Address address) {
    trace::Storage storage;
    storage.bytes = bytes;
    storage.address = address;
    storage.op = trace::kNoOp;
    storage.tensor_died = storage.died = EventId{UINT64_MAX};
    storage.from_before = true;
    trace().storages.push_back(storage);
    trace().live_before += bytes;
    return StorageId{trace().storages.size() - 1};
  }

  void end(StorageId id, Nanoseconds at, trace::StackId stack) {
    trace::Storage& storage = trace().storages[id.value];
    storage.tensor_died = storage.died = next_event();
    level_ -= static_cast<std::int64_t>(storage.bytes.count);
    emit(trace::event::Free{id}, at, stack);
  }

  // Emits the change of the caching allocator's reserved bytes since the last event.
  void follow_reserved(const MemoryEvent& memory) {
    if (memory.reserved.value_or(0) <= 0) return;
    const Bytes now{static_cast<std::uint64_t>(*memory.reserved)};
    if (!reserved_) trace().reserved_before = now;
    const Bytes before = reserved_.value_or(now);
    if (now > before) emit(trace::event::ReservedMore{{}, now - before}, memory.at, {});
    if (now < before) emit(trace::event::ReservedLess{{}, before - now}, memory.at, {});
    reserved_ = now;
  }

  // Compares the level that the trace states with the level counted here. The first difference is what was live before
  // the first event. If the difference changes later, that is an inconsistency.
  void follow_allocated(const MemoryEvent& memory) {
    if (!totals_ || !memory.allocated) return;
    const std::int64_t difference = *memory.allocated - level_;  // cannot overflow: both are within 2^62
    if (!stated_before_) {
      stated_before_ = difference;
    } else if (difference != last_difference_) {
      if (level_jumps_++ == 0)
        tell(fmt::format("event {}: \"Total Allocated\" is {} bytes, the events before it add up to {}",
                         next_event().value - 1, *memory.allocated, level_ + last_difference_));
    }
    last_difference_ = difference;
  }

  void finish() {
    if (level_jumps_ > 1)
      tell(fmt::format("\"Total Allocated\" differs from the events' sum at {} events more", level_jumps_ - 1));
    const Bytes freed_later = trace().live_before;
    if (stated_before_ && *stated_before_ < 0)
      tell(fmt::format("\"Total Allocated\" says that {} bytes were live before the first event", *stated_before_));
    const Bytes stated{static_cast<std::uint64_t>(std::max<std::int64_t>(stated_before_.value_or(0), 0))};
    if (stated > freed_later) add_from_before(stated - freed_later, {});
    if (stated_before_ && stated < freed_later)
      tell(fmt::format("{} bytes were live before the first event, yet {} bytes from before it are freed", stated.count,
                       freed_later.count));
    for (trace::Storage& storage : trace().storages) {
      storage.tensor_died = std::min(storage.tensor_died, trace().end());
      storage.died = std::min(storage.died, trace().end());
    }
    trace().complete = device_.totals && trace().live_before == Bytes{};
    if (told_ > kMostTold) trace().inconsistencies.push_back(fmt::format("{} inconsistencies more", told_ - kMostTold));
  }

  template <class What>
  void emit(What what, Nanoseconds at, trace::StackId stack) {
    trace().events.push_back({what, microseconds(at), stack});
  }

  void tell(std::string what) {
    if (++told_ <= kMostTold) trace().inconsistencies.push_back(std::move(what));
  }

  const ProfileEvents& events_;
  const OpenSpans& open_;
  std::span<const std::uint32_t> memory_;
  trace::Profile::Device device_;
  LiveStorages live_;
  std::unordered_map<std::uint32_t, OpId> op_by_span_;
  std::vector<std::uint32_t> begins_, ends_;
  std::size_t next_begin_ = 0, next_end_ = 0;
  bool totals_ = false;
  std::int64_t level_ = 0;  // sum of the events so far; negative if storages from before were freed
  std::optional<std::int64_t> stated_before_;
  std::int64_t last_difference_ = 0;
  std::uint64_t level_jumps_ = 0;
  std::optional<Bytes> reserved_;
  std::size_t told_ = 0;
};

}  // namespace

trace::Profile::Device make_device(const ProfileEvents& events, const OpenSpans& open,
                                   std::span<const std::uint32_t> memory) {
  return DeviceMaker(events, open, memory).make();
}

Bytes peak(const trace::Trace& trace) {
  Bytes level = trace.live_before, most = level;
  for (const trace::Event& event : trace.events) {
    if (const auto* born = std::get_if<trace::event::Allocation>(&event.what))
      level += trace.storages[born->storage.value].bytes;
    if (const auto* died = std::get_if<trace::event::Free>(&event.what))
      level -= trace.storages[died->storage.value].bytes;
    most = std::max(most, level);
  }
  return most;
}

}  // namespace ullage::read
