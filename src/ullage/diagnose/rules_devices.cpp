// SPDX-License-Identifier: Apache-2.0

// Causes: work lies unevenly on several devices or processes.

#include "ullage/base/sizes.h"
#include "ullage/diagnose/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace ullage::diagnose {
namespace {

// Counts processes of about the size of a bare CUDA context, which is 0.3 to 1 GiB. Ranks that opened device 0 without
// working there look like this.
std::size_t stray_contexts(const std::vector<trace::ProcessUse>& processes) {
  return static_cast<std::size_t>(std::count_if(
      processes.begin(), processes.end(),
      [](const trace::ProcessUse& process) { return process.bytes >= 200_MiB && process.bytes <= 1200_MiB; }));
}

// Returns the largest group of other processes that hold the same within 2 %, each more than a bare context. Ranks that
// loaded one checkpoint to the same card look like this, and copies of one program.
std::vector<trace::ProcessUse> equal_processes(std::vector<trace::ProcessUse> processes) {
  std::erase_if(processes, [](const trace::ProcessUse& process) { return process.bytes <= 1200_MiB; });
  std::ranges::sort(processes, {}, &trace::ProcessUse::bytes);
  std::size_t begin = 0, best = 0, count = 0;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    while (processes[i].bytes.count - processes[begin].bytes.count > processes[begin].bytes.count / 50) ++begin;
    if (i + 1 - begin > count) count = i + 1 - begin, best = begin;
  }
  const auto from = processes.begin() + static_cast<std::ptrdiff_t>(best);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

std::optional<Finding> ranks_on_one_device(const Evidence& evidence) {
  if (!evidence.message) return std::nullopt;
  std::set<unsigned> ranks;
  for (const trace::OutOfMemory& error : evidence.log->errors) {
    if (error.rank && error.device && error.device == evidence.message->device) ranks.insert(*error.rank);
  }
  if (ranks.size() >= 2) {
    return Finding{
        0.85,
        {fmt::format("{} ranks ran out of memory on the same device {}", ranks.size(), *evidence.message->device)}};
  }
  if (evidence.message->rank.value_or(0) > 0 && evidence.message->device == 0u) {
    const std::string& where = evidence.signs.where(Sign::Loading);
    if (where.find("load") != where.npos && where.find("map_location") == where.npos) {
      return Finding{0.55,
                     {fmt::format("rank {} failed on device 0 while it loaded: {}", *evidence.message->rank, where),
                      "without map_location tensors come back on the device from which they were saved"}};
    }
    return Finding{
        0.3,
        {fmt::format("rank {} failed on device 0 (unless each rank sees one card alone)", *evidence.message->rank)}};
  }
  if (evidence.facts.device.value_or(0) != 0) return std::nullopt;
  if (const auto equal = equal_processes(evidence.other_processes); equal.size() >= 2) {
    return Finding{0.45,
                   {fmt::format("{} other processes hold about the same each, {}, on device 0: ranks that loaded one "
                                "checkpoint to the same card look so, and copies of one program",
                                equal.size(), to_string(equal.front().bytes))}};
  }
  const std::size_t stray = stray_contexts(evidence.other_processes);
  if (stray < 2) return std::nullopt;
  return Finding{
      0.6,
      {fmt::format("{} other processes hold 0.2 to 1.2 GiB each on device 0: the contexts of ranks that never "
                   "chose their own device look so",
                   stray)}};
}

// Returns whether no other device of the recording held more. True if the recording has only one device.
bool is_fullest(const History& history, unsigned device) {
  const auto by_peak = [](const DeviceShare& a, const DeviceShare& b) { return a.live_peak < b.live_peak; };
  const auto most = std::ranges::max_element(history.devices, by_peak);
  return most == history.devices.end() || most->device == device;
}

// Returns the device that held the most of those other than `device`; null if there is none.
const DeviceShare* fullest_other(const History& history, unsigned device) {
  const DeviceShare* most = nullptr;
  for (const DeviceShare& share : history.devices) {
    if (share.device != device && (most == nullptr || share.live_peak > most->live_peak)) most = &share;
  }
  return most;
}

// For a log of several ranks: this rank held at least 1.3 times as much as any other that failed. The first rank often
// does, because it evaluates, logs, gathers or loads for all.
std::optional<Finding> uneven_ranks(const Evidence& evidence) {
  const trace::OutOfMemory& own = *evidence.message;
  if (!own.rank || !own.allocated || *own.allocated < 256_MiB) return std::nullopt;
  Bytes most;
  for (const trace::OutOfMemory& error : evidence.log->errors) {
    if (error.rank && error.rank != own.rank) most = std::max(most, error.allocated.value_or(Bytes{}));
  }
  const double times = share(own.allocated, most);
  if (times < 1.3) return std::nullopt;
  return Finding{times >= 2 ? 0.6 : 0.45,
                 {fmt::format("rank {} held {}, {:.1f} times as much as any other rank that failed", *own.rank,
                              to_string(*own.allocated), times),
                  "ranks that do the same hold the same: look for what this one does alone"}};
}

std::optional<Finding> uneven_devices(const Evidence& evidence) {
  if (evidence.message) return uneven_ranks(evidence);
  if (!evidence.history || !evidence.history->failed()) return std::nullopt;
  const History& history = *evidence.history;
  const DeviceShare* other = fullest_other(history, history.trace.device);
  const Bytes own = sum(history.peak.live, history.oom->requested).value_or(history.peak.live);
  if (other == nullptr || other->live_peak == Bytes{} || own < 256_MiB) return std::nullopt;
  const double times = share(own, other->live_peak);
  if (times < 1.5) return std::nullopt;
  std::string all;
  for (const DeviceShare& each : history.devices) {
    all += fmt::format("{}GPU {} at most {}", all.empty() ? "" : ", ", each.device, to_string(each.live_peak));
  }
  return Finding{times >= 3 ? 0.7 : 0.45,
                 {fmt::format("with the request GPU {} would hold {}, {:.1f} times as much as any other device",
                              history.trace.device, to_string(own), times),
                  "live bytes: " + all}};
}

std::optional<Finding> dataparallel_first_card(const Evidence& evidence) {
  if (!evidence.signs.has(Sign::DataParallel)) return std::nullopt;
  if (evidence.history && !is_fullest(*evidence.history, 0)) return std::nullopt;
  std::vector<std::string> why{"DataParallel keeps the weights and gathers all outputs on the first device: " +
                               evidence.signs.where(Sign::DataParallel)};
  const bool first = evidence.facts.device == 0u;
  if (first) why.push_back("device 0 is the one that failed");
  return Finding{first ? 0.55 : 0.3, std::move(why)};
}

constexpr std::array kDevicesRules = {
    CauseRule{"ranks_on_one_device", "Several ranks work on the same device", &ranks_on_one_device},
    CauseRule{"uneven_devices", "One device holds far more than the others", &uneven_devices},
    CauseRule{"dataparallel_first_card", "DataParallel loads the first device more than the others",
              &dataparallel_first_card},
};

}  // namespace

std::span<const CauseRule> devices_rules() { return kDevicesRules; }

}  // namespace ullage::diagnose
