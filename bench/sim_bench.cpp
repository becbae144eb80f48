// SPDX-License-Identifier: Apache-2.0
// Measures how many allocations and frees per second the model of the caching allocator handles. One item is one
// allocation or one free.
#include "ullage/sim/caching.h"
#include "ullage/sim/device.h"
#include "ullage/sim/replay.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <variant>
#include <vector>

namespace ullage::sim {
namespace {

struct Operation {
  bool allocates = false;
  std::uint64_t value = 0;  // bytes, or the number of the allocation to free
};
struct Operations {
  std::vector<Operation> all;
  std::uint64_t allocations = 0;

  void allocate(std::uint64_t bytes) {
    all.push_back({true, bytes});
    ++allocations;
  }
  void free(std::uint64_t allocation) { all.push_back({false, allocation}); }
};

std::uint64_t draw_size(std::mt19937_64& random, double bits) {
  return static_cast<std::uint64_t>(std::exp2(std::uniform_real_distribution<>(0, bits)(random)));
}

// Training steps. In forward, two of three ops save a tensor and the third makes a temporary. The saved tensors are
// freed in reverse order, with one more temporary each.
Operations training_steps(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> sizes(64);
  for (std::uint64_t& size : sizes) size = draw_size(random, 28);
  Operations operations;
  while (operations.all.size() < count) {
    std::vector<std::uint64_t> saved;
    for (std::size_t op = 0; op < 600; ++op) {
      if (op % 3 != 2) saved.push_back(operations.allocations);
      operations.allocate(sizes[op % sizes.size()]);
      if (op % 3 == 2) operations.free(operations.allocations - 1);
    }
    for (; !saved.empty(); saved.pop_back()) {
      operations.allocate(sizes[saved.size() % sizes.size()]);
      operations.free(operations.allocations - 1);
      operations.free(saved.back());
    }
  }
  return operations;
}

// Sizes of all magnitudes, half of them drawn from 64 fixed ones; about 2,000 live blocks.
Operations random_requests(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> shapes(64);
  for (std::uint64_t& size : shapes) size = draw_size(random, 28);
  Operations operations;
  std::vector<std::uint64_t> live;
  while (operations.all.size() < count) {
    if (!live.empty() && random() % 100 < (live.size() < 2000 ? 35u : 65u)) {
      const std::size_t at = random() % 2 == 0 ? random() % live.size() : live.size() - 1;
      operations.free(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      live.push_back(operations.allocations);
      operations.allocate(random() % 2 == 0 ? shapes[random() % 64] : draw_size(random, 28));
    }
  }
  return operations;
}

void run(benchmark::State& state, const Operations& operations, const CachingSettings& settings) {
  std::vector<BlockId> blocks(operations.allocations);
  for (auto _ : state) {
    SimulatedDevice device(Bytes{1ull << 50});
    CachingAllocator allocator(settings, device);
    std::size_t next = 0;
    for (const Operation& operation : operations.all) {
      if (operation.allocates) {
        blocks[next++] = std::get<Allocation>(allocator.allocate(Bytes{operation.value}, StreamId{0})).block;
      } else {
        allocator.free(blocks[operation.value]);
      }
    }
    benchmark::DoNotOptimize(allocator.stats().reserved);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(operations.all.size()));
}

constexpr std::size_t kOperations = 1'000'000;

void BM_training(benchmark::State& state) { run(state, training_steps(kOperations), {}); }
void BM_random(benchmark::State& state) { run(state, random_requests(kOperations), {}); }
void BM_random_expandable(benchmark::State& state) {
  CachingSettings settings;
  settings.expandable_segments = true;
  run(state, random_requests(kOperations), settings);
}

BENCHMARK(BM_training)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_random)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_random_expandable)->Unit(benchmark::kMillisecond);

// Records a training loop and runs it through replay(), which includes the layout before it and up to three rules for
// ties.
class Recorder final : public Listener {
 public:
  void heard(const AllocatorEvent& event) override {
    using Action = AllocatorEvent::Action;
    const auto add = [&](auto what) { recording.events.push_back({what, std::nullopt, {}}); };
    const auto& [action, at, bytes, stream, left] = event;
    if (action == Action::Allocated) add(trace::record::Allocation{at, bytes, stream});
    if (action == Action::FreeRequested) add(trace::record::FreeRequest{at, bytes, stream});
    if (action == Action::FreeCompleted) add(trace::record::Free{at, bytes, stream});
    if (action == Action::SegmentAllocated) add(trace::record::SegmentAllocation{at, bytes, stream});
  }
  trace::DeviceRecording recording;
};

void BM_replay(benchmark::State& state) {
  const Operations operations = training_steps(400'000);
  SimulatedDevice device(Bytes{1ull << 50});
  Recorder recorder;
  CachingAllocator allocator({}, device, &recorder);
  std::vector<BlockId> blocks;
  for (const Operation& operation : operations.all) {
    if (operation.allocates) {
      blocks.push_back(std::get<Allocation>(allocator.allocate(Bytes{operation.value}, StreamId{0})).block);
    } else {
      allocator.free(blocks[operation.value]);
    }
  }
  for (const CachingAllocator::BlockView& view : allocator.blocks()) {
    trace::Segment segment;
    segment.address = view.address;
    segment.size = view.size;
    segment.small = view.small;
    segment.blocks.push_back({view.address, view.size, {}, trace::Block::State::Inactive, {}});
    recorder.recording.segments.push_back(segment);  // everything is free at the end, so each block is a whole segment
  }
  for (auto _ : state) {
    const Replay result = replay(recorder.recording, {});
    if (result.first_difference || !result.complete) state.SkipWithError("the model differs from itself");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(recorder.recording.events.size()));
}
BENCHMARK(BM_replay)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ullage::sim
