// SPDX-License-Identifier: Apache-2.0
// Runs PyTorch's own caching allocator on the stand-in CUDA runtime. Performs the operations of one case and writes
// every event that the allocator reports to its trace trackers.
//   replay_real CASE EVENTS     the settings come from PYTORCH_ALLOC_CONF
// Built once for each version of torch against that version's headers; see README.md.

#include "exchange.h"
#include "fake_cudart.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <vector>

// In a complete torch, ATen's CUDA hooks call this function. It is exported but is in no header.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace {

using c10::CachingDeviceAllocator::TraceEntry;
using ullage::oracle::CaseHeader;
using ullage::oracle::kStreams;
using ullage::oracle::Operation;
using ullage::oracle::RunHeader;
using ullage::oracle::SeenEvent;
using Action = SeenEvent::Action;
namespace caching = c10::cuda::CUDACachingAllocator;

Action action_of(TraceEntry::Action action) {
  switch (action) {
    case TraceEntry::ALLOC:
      return Action::Allocated;
    case TraceEntry::FREE_REQUESTED:
      return Action::FreeRequested;
    case TraceEntry::FREE_COMPLETED:
      return Action::FreeCompleted;
    case TraceEntry::SEGMENT_ALLOC:
      return Action::SegmentAllocated;
    case TraceEntry::SEGMENT_FREE:
      return Action::SegmentFreed;
    case TraceEntry::SEGMENT_MAP:
      return Action::SegmentMapped;
    case TraceEntry::SEGMENT_UNMAP:
      return Action::SegmentUnmapped;
    case TraceEntry::OOM:
      return Action::OutOfMemory;
    default:
      throw std::runtime_error("an action of the trace that this program does not know");
  }
}

// The allocator, its streams and the events that it reported.
struct Replay {
  caching::CUDAAllocator* allocator = nullptr;
  std::vector<c10::cuda::CUDAStream> streams;
  std::vector<SeenEvent> seen;
  std::uint32_t operation = 0;  // in progress
  bool ended = false;           // later events come from our own queries and are not recorded
  std::unordered_map<std::uint32_t, c10::DataPtr> live;
};

void start(Replay& replay, const CaseHeader& header) {
  const FakeDeviceSettings device{header.device_bytes, header.event_queries, header.first_fit != 0};
  fake_cuda_configure(&device);
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::detail::init_p2p_access_cache(1);
  caching::init(1);
  replay.allocator = caching::get();
  if (header.memory_fraction < 1) replay.allocator->setMemoryFraction(header.memory_fraction, 0);
  replay.streams.push_back(c10::cuda::getDefaultCUDAStream(0));
  while (replay.streams.size() < kStreams) replay.streams.push_back(c10::cuda::getStreamFromPool(false, 0));
}

void listen(Replay& replay) {
  std::map<void*, std::uint8_t> index;
  for (std::uint8_t i = 0; i < kStreams; ++i) index[replay.streams[i].stream()] = i;
  replay.allocator->attachAllocatorTraceTracker([&replay, index](const TraceEntry& entry) {
    if (replay.ended) return;
    const Action action = action_of(entry.action_);
    const std::uint64_t base = action == Action::OutOfMemory ? 0 : kFakeBaseAddress;
    replay.seen.push_back({entry.addr_ - base, entry.size_, replay.operation, action, index.at(entry.stream_)});
  });
}

void perform(Replay& replay, const Operation& operation) {
  const auto block = replay.live.find(operation.block);
  switch (operation.kind) {
    case Operation::Kind::Allocate:
      c10::cuda::setCurrentCUDAStream(replay.streams.at(operation.stream));
      try {
        replay.live.emplace(operation.block, replay.allocator->allocate(operation.bytes));
      } catch (const c10::OutOfMemoryError&) {  // the allocator has already reported it as an event
      }
      return;
    case Operation::Kind::Free:
      if (block != replay.live.end()) replay.live.erase(block);
      return;
    case Operation::Kind::RecordStream:
      if (block != replay.live.end()) {
        replay.allocator->recordStream(block->second, replay.streams.at(operation.stream));
      }
      return;
    case Operation::Kind::EmptyCache:
      replay.allocator->emptyCache();
      return;
  }
}

// Returns the allocator's statistics. Throws if they disagree with its own snapshot or the device's count.
ullage::oracle::Totals totals_of(Replay& replay) {
  const auto statistics = replay.allocator->getDeviceStats(0);
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  for (const auto& segment : replay.allocator->snapshot({0, 0}, false).segments) {
    reserved += segment.total_size;
    allocated += segment.allocated_size;
  }
  FakeDeviceCounters device{};
  fake_cuda_counters(&device);
  const auto count = [](const auto& stat) { return static_cast<std::uint64_t>(stat); };
  const auto& bytes = statistics.reserved_bytes[0];
  if (reserved != count(bytes.current) || allocated != count(statistics.allocated_bytes[0].current) ||
      reserved != device.used) {
    throw std::runtime_error("snapshot, statistics and device disagree");
  }
  return {allocated,
          count(statistics.allocated_bytes[0].peak),
          reserved,
          count(bytes.peak),
          count(statistics.segment[0].current),
          count(statistics.num_alloc_retries),
          count(statistics.num_ooms)};
}

void run(const char* case_file, const char* events_file) {
  CaseHeader header;
  std::vector<Operation> operations;
  if (!ullage::oracle::read_exchange(case_file, header, &CaseHeader::operations, operations)) {
    throw std::runtime_error(std::string(case_file) + ": cannot be read");
  }
  auto& replay = *new Replay;  // never destroyed, so that live blocks are not freed at the end
  start(replay, header);
  listen(replay);
  const auto begin = std::chrono::steady_clock::now();
  for (const Operation& operation : operations) {
    perform(replay, operation);
    ++replay.operation;
  }
  RunHeader told;
  told.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  replay.ended = true;
  told.totals = totals_of(replay);
  for (unsigned i = 0; i < kStreams; ++i) told.stream_ids[i] = static_cast<std::uint64_t>(replay.streams[i].id());
  told.events = replay.seen.size();
  if (!ullage::oracle::write_exchange(events_file, told, replay.seen)) {
    throw std::runtime_error(std::string(events_file) + ": cannot be written");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: replay_real CASE EVENTS\n", stderr), 2;
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "replay_real: %s\n", error.what());
    std::_Exit(1);
  }
  std::_Exit(0);  // does not destroy torch's static objects, which hold blocks
}
