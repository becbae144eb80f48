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

// Counts processes of about the size of a bare context, 0.3 to 1 GiB. Ranks that opened device 0 without working there
// look like this.
std::size_t stray_contexts(const std::vector<trace::ProcessUse>& processes) {
  return static_cast<std::size_t>(std::count_if(
      processes.begin(), processes.end(),
      [](const trace::ProcessUse& process) { return process.bytes >= 200_MiB && process.bytes <= 1200_MiB; }));
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
    return Finding{
        0.3,
        {fmt::format("rank {} failed on device 0 (unless each rank sees one card alone)", *evidence.message->rank)}};
  }
  const std::size_t stray = stray_contexts(evidence.other_processes);
  if (stray < 2 || evidence.facts.device.value_or(0) != 0) return std::nullopt;
  return Finding{
      0.6,
      {fmt::format("{} other processes hold 0.2 to 1.2 GiB each on device 0: the contexts of ranks that never "
                   "chose their own device look so",
                   stray)}};
}

std::optional<Finding> dataparallel_first_card(const Evidence& evidence) {
  if (!evidence.signs.has(Sign::DataParallel)) return std::nullopt;
  std::vector<std::string> why{"DataParallel keeps the weights and gathers all outputs on the first device: " +
                               evidence.signs.where(Sign::DataParallel)};
  const bool first = evidence.facts.device.value_or(0) == 0;
  if (first) why.push_back("device 0 is the one that failed");
  return Finding{first ? 0.55 : 0.3, std::move(why)};
}

constexpr std::array kDevicesRules = {
    CauseRule{"ranks_on_one_device", "Several ranks work on the same device", &ranks_on_one_device},
    CauseRule{"dataparallel_first_card", "DataParallel loads the first device more than the others",
              &dataparallel_first_card},
};

}  // namespace

std::span<const CauseRule> devices_rules() { return kDevicesRules; }

}  // namespace ullage::diagnose
