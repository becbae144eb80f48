// SPDX-License-Identifier: Apache-2.0
// Writes a Timeline as JSON for the page's own script (page/data.js reads it). Most columns hold differences, which are
// short because neighbours are similar.
#include "ullage/report/html/html_text.h"
#include "ullage/report/html/html_timeline.h"
#include "ullage/report/json_values.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ullage::report {
namespace {

constexpr std::size_t kFrames = 12;         // innermost frames of an owner
constexpr std::size_t kOwnersFramed = 100;  // owners that are written with frames

// Returns "[5,0,-2]": each number minus the one before it. Differences wrap, because the page's sums need not be right
// beyond 2^53.
template <class Get>
std::string differences(std::size_t count, const Get& get) {
  std::string out = "[";
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint64_t>(get(i));
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(value - last));
    last = value;
  }
  return out + "]";
}

template <class Get>
std::string numbers(std::size_t count, const Get& get) {
  std::string out = "[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", get(i));
  }
  return out + "]";
}

// Python's frames say more to a person than those of C++, which are written only if there are no others.
Json frames_of(trace::StackId stack, const trace::Stacks& stacks) {
  Json json = Json::array();
  for (const bool python : {true, false}) {
    for (const trace::FrameId id : stacks.frames(stack)) {
      const trace::Frame& frame = stacks.frame(id);
      if ((frame.file != "??") != python || json.size() == kFrames) continue;
      json.push_back(python ? fmt::format("{}:{} {}", frame.file, frame.line, frame.function) : frame.function);
    }
    if (!json.empty()) break;
  }
  return json;
}

Json owners_of(const Timeline& timeline, const trace::Stacks& stacks) {
  Json json = Json::array();
  for (std::size_t i = 0; i < timeline.owners.size(); ++i) {
    const TimelineOwner& owner = timeline.owners[i];
    json.push_back({{"name", owner.name}, {"category", std::string(trace::name(owner.category))}});
    if (i < kOwnersFramed) json.back()["frames"] = frames_of(owner.stack, stacks);
  }
  return json;
}

// Returns the lowest address. All addresses are written relative to it, because a script's numbers cannot hold full
// addresses exactly.
std::uint64_t lowest(const Timeline& timeline) {
  std::uint64_t least = UINT64_MAX;
  for (const PlacedRange& range : timeline.ranges) least = std::min(least, range.address.value);
  for (const PlacedStorage& storage : timeline.storages) least = std::min(least, storage.address.value);
  return least == UINT64_MAX ? 0 : least;
}

std::string placed(const auto& all, std::uint64_t base) {
  const std::size_t n = all.size();
  std::string out = "\"from\":" + differences(n, [&](std::size_t i) { return all[i].from; });
  out += ",\"lasts\":" + numbers(n, [&](std::size_t i) { return all[i].to - all[i].from; });
  out += ",\"at\":" + numbers(n, [&](std::size_t i) { return all[i].address.value - base; });
  return out + ",\"bytes\":" + numbers(n, [&](std::size_t i) { return all[i].bytes.count; });
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

}  // namespace

std::string to_json(const Timeline& timeline, const trace::Stacks& stacks) {
  const std::size_t n = timeline.moments.size();
  const std::uint64_t base = lowest(timeline);
  std::string out = fmt::format("{{\"events\":{},\"peak\":{},\"shown\":{},\"stacked\":{},\"base\":\"{}\",",
                                timeline.events, timeline.peak, timeline.shown, timeline.stacked, base);
  out += "\"moments\":" + differences(n, [&](std::size_t i) { return timeline.moments[i]; });
  out += ",\"times\":" + differences(timeline.times.size(), [&](std::size_t i) { return timeline.times[i]; });
  out += ",\"reserved\":" + differences(n, [&](std::size_t i) { return timeline.reserved[i].count; });
  out += ",\"levels\":[";
  for (std::size_t column = 0; column < timeline.levels.size(); ++column) {
    out += column == 0 ? "" : ",";
    out += differences(n, [&](std::size_t i) { return timeline.levels[column][i].count; });
  }
  out += "],\"owners\":" + text_of(owners_of(timeline, stacks));
  out += ",\"storages\":{" + placed(timeline.storages, base) + ",\"owner\":";
  out += numbers(timeline.storages.size(), [&](std::size_t i) {
    const auto& owner = timeline.storages[i].owner;
    return owner ? static_cast<std::int64_t>(*owner) : -1;
  });
  out += fmt::format("}},\"leftOut\":{}", timeline.storages_left_out);
  out += ",\"ranges\":{" + placed(timeline.ranges, base) + "}";
  Json strips = Json::array(), refused = Json::array();
  for (const Strip& strip : timeline.strips) strips.push_back({strip.from, strip.to, strip.name});
  for (const RefusedRequest& one : timeline.refused) refused.push_back({one.moment, one.requested.count});
  out += ",\"strips\":" + text_of(strips) + ",\"refused\":" + text_of(refused);
  out += ",\"steps\":" + differences(timeline.steps.size(), [&](std::size_t i) { return timeline.steps[i]; });
  out += ",\"ops\":" + text_of(Json(timeline.ops));
  out += ",\"opAt\":" + numbers(timeline.op_at.size(), [&](std::size_t i) { return timeline.op_at[i]; });
  out += fmt::format(",\"pool\":{}}}", timeline.has_pool);
  return in_script(out);
}

}  // namespace ullage::report
