// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include "random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

namespace ullage::oracle {

namespace {

// Formats the intervals as "[256:4,512:2,1024:8,>:1]".
std::string list_text(const Settings& settings) {
  std::string text = "[";
  std::uint64_t interval = settings.first_interval;
  for (std::size_t i = 0; i + 1 < settings.roundup.size(); ++i, interval *= settings.interval_factor) {
    text += fmt::format("{}:{},", interval, settings.roundup[i]);
  }
  return text + fmt::format(">:{}]", settings.roundup.back());
}

Case named(const char* name, Settings settings, std::uint64_t streams = 1) {
  Case one;
  one.name = name;
  one.settings = std::move(settings);
  one.streams = streams;
  one.empty_share = 5;
  return one;
}

// Makes at least two streams share blocks. An event is reported done at the third query.
Case shared(Case one, std::uint64_t record_share = 500, std::uint64_t event_queries = 3) {
  one.streams = one.streams < 2 ? 2 : one.streams;
  one.record_share = record_share;
  one.event_queries = event_queries;
  return one;
}

// Gives the program a device of which it wants nearly all bytes (about 85 %), so that some requests fail. `device` in
// MiB.
Case tight(Case one, std::uint64_t device = 8192, std::uint64_t fraction_percent = 100) {
  one.device = device;
  one.fraction_percent = fraction_percent;
  one.live = device * fraction_percent / 100 * 85 / 100;
  one.empty_share = 0;
  one.hopeless_share = 3;
  return one;
}

}  // namespace

std::string Settings::text() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) parts.push_back(fmt::format("{}:{}", key, *value));
  };
  if (!large_segment_last) add("large_segment_size_mb", large_segment);
  add("max_split_size_mb", max_split);
  add("max_non_split_rounding_mb", max_non_split_rounding);
  if (roundup.size() == 1) add("roundup_power2_divisions", roundup.front());
  if (roundup.size() > 1) parts.push_back("roundup_power2_divisions:" + list_text(*this));
  const auto add_share = [&](const char* key, const std::optional<std::uint64_t>& percent) {
    if (percent) parts.push_back(fmt::format("{}:{}.{:02}", key, *percent / 100, *percent % 100));
  };
  add_share("garbage_collection_threshold", collect_percent);
  add_share("per_process_memory_fraction", fraction_percent);
  if (expandable) parts.push_back("expandable_segments:True");
  if (large_segment_last) add("large_segment_size_mb", large_segment);
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<Case> named_cases() {
  const Settings expandable{.expandable = true};
  std::vector<Case> cases{
      named("default", {}),
      named("two_streams", {}, 2),
      shared(named("shared", {}), 1000, 0),
      shared(named("shared_late", {}), 1000, 5),
      shared(named("four_streams_late", {}, 4), 1000, 5),
      shared(named("max_split", {.max_split = 64})),
      shared(named("max_split_least", {.max_split = 21})),
      shared(named("rounding", {.max_split = 64, .max_non_split_rounding = 128})),
      shared(named("roundup", {.roundup = {4}})),
      shared(named("roundup_list", {.roundup = {1, 2, 4, 8, 16}, .first_interval = 4})),
      shared(named("large_segment", {.large_segment = 64})),
      tight(named("collect", {.collect_percent = 60}), 65'536, 50),
      shared(tight(named("collect_shared", {.collect_percent = 60}), 65'536, 50)),
      tight(named("shortage", {})),
      shared(tight(named("shortage_shared", {}))),
      shared(tight(named("shortage_fraction", {}), 32'768, 25)),
      tight(named("shortage_fraction_in_settings", {.collect_percent = 80, .fraction_percent = 25}), 32'768, 25),
      shared(tight(named("shortage_max_split", {.max_split = 64}))),
      shared(tight(named("shortage_mixture", {.max_split = 128, .roundup = {4}, .collect_percent = 60}), 16'384, 50)),
      named("expandable", expandable),
      shared(named("expandable_shared", expandable)),
      shared(tight(named("expandable_shortage", expandable))),
      shared(tight(named("expandable_fraction", expandable), 32'768, 25)),
      shared(tight(named("expandable_large_page", {.large_segment = 40, .expandable = true}))),
      tight(named("borders", {})),
      shared(tight(named("borders_max_split", {.max_split = 64, .max_non_split_rounding = 65}))),
      shared(tight(named("borders_mixture", {.max_split = 100, .roundup = {8}, .collect_percent = 50}), 16'384, 50)),
      shared(tight(named("borders_expandable", expandable))),
  };
  for (Case& one : cases) {
    one.borders_only = one.name.starts_with("borders");
    // Each range of expandable segments reserves addresses for 1 1/8 of the device, so the device is made smaller.
    if (one.settings.expandable && one.device == (1u << 20)) one.device = 1u << 18;
  }
  return cases;
}

Case random_case(std::uint64_t seed) {
  using List = std::vector<std::uint64_t>;
  Random random(seed ^ 0x6f7261636c65);  // other random numbers than those of operations_of()
  Case one;
  one.name = "random";
  one.seed = seed;
  Settings& settings = one.settings;
  if (random.chance(5000)) settings.max_split = random.pick(List{64, 65, 100, 200, 1000});
  if (random.chance(3000)) settings.max_non_split_rounding = random.pick(List{65, 128, 500});
  if (random.chance(5000)) {
    const std::size_t intervals = random.chance(3000) ? 2 + random.below(6) : 1;
    for (std::size_t i = 0; i < intervals; ++i) settings.roundup.push_back(random.pick(List{1, 2, 4, 8, 16, 32}));
    settings.first_interval = random.pick(List{1, 2, 16, 256});
    settings.interval_factor = random.pick(List{2, 2, 4});
  }
  if (random.chance(4000)) settings.collect_percent = random.pick(List{10, 60, 90});
  settings.expandable = random.chance(4000);
  if (random.chance(3000)) settings.large_segment = random.pick(List{20, 30, 64});
  settings.large_segment_last = random.chance(5000);
  one.device = random.pick(List{4096, 8192, 16'384, 65'536});
  one.fraction_percent = random.pick(List{100, 90, 50});
  if (one.fraction_percent < 100 && random.chance(3000)) settings.fraction_percent = one.fraction_percent;
  one.live = one.device * one.fraction_percent * random.pick(List{50, 80, 95}) / 10'000;
  one.streams = 1 + random.below(kStreams);
  one.record_share = random.pick(List{0, 200, 1000});
  one.empty_share = random.pick(List{0, 10});
  one.hopeless_share = random.pick(List{0, 3});
  one.event_queries = random.pick(List{0, 2, 5, 50});
  one.borders_only = random.chance(1500);
  return one;
}

CaseHeader header_of(const Case& one) {
  CaseHeader header;
  header.device_bytes = one.device << 20;
  if (!one.settings.fraction_percent) header.memory_fraction = static_cast<double>(one.fraction_percent) / 100;
  header.event_queries = one.event_queries;
  header.first_fit = one.first_fit ? 1 : 0;
  header.operations = one.operations;
  return header;
}

}  // namespace ullage::oracle
