// SPDX-License-Identifier: Apache-2.0
#include "fake_cudart.h"
#include "runs.h"

#include "ullage/base/check.h"
#include "ullage/sim/caching.h"

#include <chrono>
#include <string>
#include <unordered_map>
#include <variant>

namespace ullage::oracle {

namespace {

class Recorder final : public sim::Listener {
 public:
  explicit Recorder(std::vector<SeenEvent>& events) : events_(events) {}

  void heard(const sim::AllocatorEvent& event) override {
    using Action = sim::AllocatorEvent::Action;
    static_assert(static_cast<int>(Action::OutOfMemory) == static_cast<int>(SeenEvent::Action::OutOfMemory));
    const std::uint64_t address =
        event.action == Action::OutOfMemory ? event.device_free.count : event.address.value - kFakeBaseAddress;
    events_.push_back({address, event.bytes.count, operation, static_cast<SeenEvent::Action>(event.action),
                       static_cast<std::uint8_t>(event.stream.value)});
  }

  std::uint32_t operation = 0;

 private:
  std::vector<SeenEvent>& events_;
};

using Live = std::unordered_map<std::uint32_t, sim::BlockId>;

void perform(sim::CachingAllocator& model, Live& live, const Operation& operation) {
  const auto block = live.find(operation.block);
  switch (operation.kind) {
    case Operation::Kind::Allocate: {
      const auto got = model.allocate(Bytes{operation.bytes}, sim::StreamId{operation.stream});
      if (const auto* placed = std::get_if<sim::Allocation>(&got)) live.emplace(operation.block, placed->block);
      return;
    }
    case Operation::Kind::Free:
      if (block == live.end()) return;
      model.free(block->second);
      live.erase(block);
      return;
    case Operation::Kind::RecordStream:
      if (block != live.end()) model.record_stream(block->second, sim::StreamId{operation.stream});
      return;
    case Operation::Kind::EmptyCache:
      model.empty_cache();
      return;
  }
}

}  // namespace

Behaviour behaviour_of(const std::string& torch) {
  const int minor = torch.starts_with("2.") ? std::stoi(torch.substr(2)) : 0;
  ULLAGE_CHECK(minor >= 11, "a version of torch from before 2.11, whose behaviour was never looked at");
  Behaviour behaviour;
  if (minor == 11) behaviour.ties = sim::Ties::LowestAddress;
  if (minor == 12) behaviour.ties = sim::Ties::OldestBlock;
  behaviour.keeps_ranges_too_small = minor < 15;
  return behaviour;
}

Run run_model(const Case& one, const std::vector<Operation>& operations, const Behaviour& behaviour) {
  auto settings = sim::CachingSettings::parse(one.settings.text()).value();
  const CaseHeader header = header_of(one);
  if (header.memory_fraction < 1) settings.memory_fraction = header.memory_fraction;
  settings.ties = behaviour.ties;
  settings.keeps_ranges_too_small = behaviour.keeps_ranges_too_small;
  sim::SimulatedDevice device(Bytes{header.device_bytes},
                              one.first_fit ? sim::Addresses::LowestFit : sim::Addresses::Growing,
                              Address{kFakeBaseAddress});
  Run run;
  run.events.reserve(operations.size() * 3 / 2);
  Recorder recorder(run.events);
  sim::CachingAllocator model(settings, device, &recorder, static_cast<unsigned>(header.event_queries));
  for (unsigned i = 0; i < kStreams; ++i) model.name_stream(sim::StreamId{i}, kStreamIds[i]);
  Live live;
  const auto begin = std::chrono::steady_clock::now();
  for (const Operation& operation : operations) {
    perform(model, live, operation);
    ++recorder.operation;
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const sim::CachingStats& stats = model.stats();
  run.totals = {stats.allocated.count, stats.allocated_peak.count,
                stats.reserved.count,  stats.reserved_peak.count,
                stats.segments,        stats.retries,
                stats.out_of_memory};
  return run;
}

}  // namespace ullage::oracle
