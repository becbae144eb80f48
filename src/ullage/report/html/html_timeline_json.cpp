// SPDX-License-Identifier: Apache-2.0
// Writes a Timeline as JSON for the page's own script (page/data.js reads it). Most columns hold differences, which are
// short because neighbours are similar.
#include "ullage/report/html/html_text.h"
#include "ullage/report/html/html_timeline.h"
#include "ullage/report/json_values.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <unordered_map>

namespace ullage::report {
namespace {

constexpr std::size_t kNodes = 200'000;  // most nodes of a StackTree

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

std::string text_of(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

// The stacks of a page as one tree, because most stacks share their outer frames. A stack is the node of its innermost
// frame; the parent of a node is the frame that called it.
class StackTree {
 public:
  explicit StackTree(const trace::Stacks& stacks)
      : stacks_(stacks), texts_(stacks.frame_count(), kUnseen), seen_(stacks.stack_count(), kUnseen) {}

  // Returns the stack's node; -1 if it has no frames, or if the tree is full.
  std::int64_t node(trace::StackId stack) {
    std::int64_t& known = seen_.at(stack.value);
    if (known != kUnseen) return known;
    const std::span<const trace::FrameId> frames = stacks_.frames(stack);
    known = -1;
    if (nodes_.size() + frames.size() > kNodes) return known;
    for (std::size_t i = frames.size(); i-- > 0;) known = child(known, frames[i]);
    return known;
  }

  // {"frames":[texts],"frame":[index of each node's text],"up":[how many nodes before it its parent stands; 0: none]}
  std::string json() const {
    Json frames = Json::array();
    for (const trace::FrameId id : frames_) {
      const trace::Frame& frame = stacks_.frame(id);
      // PyTorch's own frames have no line unless it looked for symbols.
      frames.push_back(frame.line == 0 ? frame.function
                                       : fmt::format("{}:{} {}", frame.file, frame.line, frame.function));
    }
    std::string out = "{\"frames\":" + text_of(frames);
    out += ",\"frame\":" + numbers(nodes_.size(), [&](std::size_t i) { return nodes_[i].frame; });
    return out + ",\"up\":" + numbers(nodes_.size(), [&](std::size_t i) { return nodes_[i].up; }) + "}";
  }

 private:
  static constexpr std::int64_t kUnseen = -2;
  struct Node {
    std::uint32_t frame = 0;
    std::int64_t up = 0;
  };

  std::int64_t child(std::int64_t parent, trace::FrameId id) {
    const std::uint64_t key = (static_cast<std::uint64_t>(parent + 1) << 32) | id.value;
    const auto [place, is_new] = children_.try_emplace(key, static_cast<std::int64_t>(nodes_.size()));
    if (!is_new) return place->second;
    std::int64_t& text = texts_.at(id.value);
    if (text == kUnseen) {
      text = static_cast<std::int64_t>(frames_.size());
      frames_.push_back(id);
    }
    nodes_.push_back({static_cast<std::uint32_t>(text), parent < 0 ? 0 : place->second - parent});
    return place->second;
  }

  const trace::Stacks& stacks_;
  std::vector<std::int64_t> texts_;  // index: FrameId; index in frames_
  std::vector<std::int64_t> seen_;   // index: StackId; its node
  std::vector<trace::FrameId> frames_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, std::int64_t> children_;
};

Json owners_of(const Timeline& timeline, StackTree& tree) {
  Json json = Json::array();
  for (const TimelineOwner& owner : timeline.owners) {
    json.push_back({{"name", owner.name},
                    {"category", std::string(trace::name(owner.category))},
                    {"stack", tree.node(owner.stack)}});
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
  StackTree tree(stacks);
  out += "],\"owners\":" + text_of(owners_of(timeline, tree));
  out += ",\"storages\":{" + placed(timeline.storages, base) + ",\"owner\":";
  out += numbers(timeline.storages.size(), [&](std::size_t i) {
    const auto& owner = timeline.storages[i].owner;
    return owner ? static_cast<std::int64_t>(*owner) : -1;
  });
  out += ",\"stack\":";
  out += numbers(timeline.storages.size(), [&](std::size_t i) { return tree.node(timeline.storages[i].stack); });
  out += fmt::format("}},\"leftOut\":{}", timeline.storages_left_out);
  out += ",\"ranges\":{" + placed(timeline.ranges, base) + "}";
  Json strips = Json::array(), refused = Json::array();
  for (const Strip& strip : timeline.strips) strips.push_back({strip.from, strip.to, strip.name, strip.own ? 1 : 0});
  for (const RefusedRequest& one : timeline.refused) refused.push_back({one.moment, one.requested.count});
  out += ",\"strips\":" + text_of(strips) + ",\"refused\":" + text_of(refused);
  out += ",\"steps\":" + differences(timeline.steps.size(), [&](std::size_t i) { return timeline.steps[i]; });
  out += ",\"ops\":" + text_of(Json(timeline.ops));
  out += ",\"opAt\":" + numbers(timeline.op_at.size(), [&](std::size_t i) { return timeline.op_at[i]; });
  out += ",\"stacks\":" + tree.json();
  out += fmt::format(",\"pool\":{}}}", timeline.has_pool);
  return in_script(out);
}

}  // namespace ullage::report
