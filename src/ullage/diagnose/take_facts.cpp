// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/take_facts.h"

#include "ullage/diagnose/op_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ullage::diagnose {
namespace {

constexpr std::string_view kAfter = "after ";  // begins the place of an op that uses no parameter (take_names.h)

// Returns, of the ops in flight at the event, the one that began last. If some of them failed, only those count.
std::optional<OpId> op_at(const trace::Take& take, EventId event) {
  std::optional<OpId> found, failed;
  for (std::size_t i = 0; i < take.details.size(); ++i) {
    const trace::OpDetail& one = take.details[i];
    const bool open = one.begin <= event && event <= one.end;
    if (!open) continue;
    if (!found || take.details[found->value].begin <= one.begin) found = OpId{i};
    if (one.failed && (!failed || take.details[failed->value].begin <= one.begin)) failed = OpId{i};
  }
  return failed ? failed : found;
}

// The op of an allocation is recorded. At any other event it is the op in flight.
std::optional<OpId> op_of(const trace::Take& take, EventId event) {
  if (event >= take.trace.end()) return std::nullopt;
  const auto* born = std::get_if<trace::event::Allocation>(&take.trace.events[event.value].what);
  if (born) {
    const OpId op = take.trace.storages[born->storage.value].op;
    if (op.value < take.details.size()) return op;
    return std::nullopt;
  }
  return op_at(take, event);
}

// Returns the part, named by the program, in which the event lies; empty if the program was in none.
std::string part_at(const trace::Take& take, EventId event) {
  std::string part;
  for (const trace::ReportedBorder& border : take.borders) {
    if (border.at > event) break;
    if (border.what == trace::ReportedBorder::What::PhaseBegin) part = border.phase;
    if (border.what == trace::ReportedBorder::What::PhaseEnd) part.clear();
  }
  return part;
}

// Returns which storages autograd keeps after the event: saved, and not released yet. By StorageId.
std::vector<bool> saved_until(const trace::Take& take, EventId event) {
  std::vector<std::int64_t> kept(take.trace.storages.size());
  for (std::size_t i = 0; i <= event.value && i < take.trace.events.size(); ++i) {
    const auto& what = take.trace.events[i].what;
    if (const auto* save = std::get_if<trace::event::Save>(&what)) ++kept[save->storage.value];
    if (const auto* unsave = std::get_if<trace::event::Unsave>(&what)) --kept[unsave->storage.value];
  }
  std::vector<bool> saved(kept.size());
  std::transform(kept.begin(), kept.end(), saved.begin(), [](std::int64_t count) { return count > 0; });
  return saved;
}

// Returns the layer in a stack of take_meaning.h's made-up frames: op, layer or graph node (may be empty), phase,
// category.
std::string layer_of(const trace::Stacks& stacks, trace::StackId stack) {
  const auto frames = stacks.frames(stack);
  return frames.size() == 4 ? stacks.frame(frames[1]).function : "";
}

// Returns the name under which a saved storage counts. The results of an op without parameters count with the layer
// before it.
std::string layer_or_op(const trace::Stacks& stacks, trace::StackId stack) {
  std::string layer = layer_of(stacks, stack);
  if (layer.starts_with(kAfter)) return layer.substr(kAfter.size());
  if (!layer.empty()) return layer;
  const auto frames = stacks.frames(stack);
  return frames.empty() ? "made by no op" : stacks.frame(frames[0]).function;
}

std::string most_of(const std::map<std::string, Bytes>& by_line) {
  const auto most = std::ranges::max_element(by_line, {}, &std::pair<const std::string, Bytes>::second);
  return most != by_line.end() ? most->first : "";
}

// Adds up the saved activations by layer. Saved parameters are left out: they would be live anyway.
void add_saved(const trace::Take& take, const trace::TakeMeaning& meaning, EventId event, TakeFacts& facts) {
  const std::vector<bool> saved = saved_until(take, event);
  std::map<std::string, SavedBy> by_name;
  std::map<std::string, std::map<std::string, Bytes>> by_line;  // of each name
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const trace::Storage& storage = take.trace.storages[i];
    const bool live = storage.born <= event && event < storage.died;
    if (!saved[i] || !live || meaning.categories[i] != trace::Category::Activations) continue;
    const std::string name = layer_or_op(meaning.stacks, storage.stack);
    SavedBy& row = by_name[name];
    row.bytes += storage.bytes, ++row.storages;
    const bool made_by_op = storage.op.value < take.details.size();
    const std::string line = made_by_op ? take.details[storage.op.value].line : "";
    if (!line.empty()) by_line[name][line] += storage.bytes;
    facts.saved += storage.bytes;
  }
  for (auto& [name, row] : by_name) {
    row.name = name;
    row.line = most_of(by_line[name]);
    facts.saved_by.push_back(std::move(row));
  }
  std::stable_sort(facts.saved_by.begin(), facts.saved_by.end(),
                   [](const SavedBy& a, const SavedBy& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::string op_in_words(const Place& place) {
  if (place.op.empty()) return "between two ops";
  const std::string line = line_in_words(place.line);
  if (place.layer.empty()) return place.op + line;
  const bool follows = place.layer.starts_with(kAfter);
  return fmt::format("{} {}{}{}", place.op, follows ? "" : "of ", place.layer, line);
}

std::string line_in_words(const std::string& line) { return line.empty() ? "" : fmt::format(" ({})", line); }

std::string time_in_words(const Place& place) {
  if (!place.part.empty()) return place.part;
  const bool known = place.phase != trace::Phase::Unknown;
  if (place.step == 0) return known ? std::string(name(place.phase)) : "";
  return known ? fmt::format("{} of step {}", name(place.phase), place.step) : fmt::format("step {}", place.step);
}

Place place_at(const trace::Take& take, const trace::TakeMeaning& meaning, std::optional<EventId> event) {
  Place place;
  if (!event || *event >= take.trace.end()) return place;
  if (const std::optional<OpId> op = op_of(take, *event)) {
    place.op = take.trace.ops[op->value].name, place.layer = take.details[op->value].layer;
    if (place.layer.empty()) place.layer = layer_of(meaning.stacks, take.trace.ops[op->value].stack);
    if (place.layer == take.details[op->value].node) place.layer.clear();  // no layer: the op's name says as much
    place.line = take.details[op->value].line;
  }
  place.part = part_at(take, *event);
  place.phase = meaning.phases[event->value];
  for (EventId begin : meaning.steps.begins) place.step += begin <= *event ? 1 : 0;
  return place;
}

TakeFacts take_facts(const trace::Take& take, const trace::TakeMeaning& meaning, const trace::Moment& moment) {
  TakeFacts facts;
  facts.place = place_at(take, meaning, moment.event);
  if (moment.event) add_saved(take, meaning, *moment.event, facts);
  const bool failed = moment.event && *moment.event < take.trace.end() &&
                      std::holds_alternative<trace::event::OutOfMemory>(take.trace.events[moment.event->value].what);
  facts.need = failed ? need_of_failed(take, *moment.event) : largest_need(take);
  facts.sliced = static_cast<std::uint64_t>(
      std::count_if(take.details.begin(), take.details.end(), [](const trace::OpDetail& op) { return op.sliced; }));
  return facts;
}

}  // namespace ullage::diagnose
