// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/levels.h"

#include "ullage/base/check.h"
#include "ullage/trace/meaning/lifetimes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ullage::trace {
namespace {

bool knows_segments(const Trace& trace) {
  return trace.reserved_before != Bytes{} || std::ranges::any_of(trace.events, [](const Event& one) {
           return std::holds_alternative<event::ReservedMore>(one.what) ||
                  std::holds_alternative<event::ReservedLess>(one.what);
         });
}

Moment after(const Trace& trace, const Levels& levels, std::optional<EventId> event) {
  if (event) return {event, levels.live[event->value], levels.reserved[event->value]};
  return {event, trace.live_before, knows_segments(trace) ? trace.reserved_before : trace.live_before};
}

bool is_live(const Storage& storage, const Moment& moment) {
  if (!moment.event) return storage.from_before;
  return storage.born <= *moment.event && *moment.event < storage.died;
}

}  // namespace

Levels levels(const Trace& trace) {
  const std::size_t events = trace.events.size();
  // Additions come before subtractions, so that a level never falls below zero in between.
  std::vector<Bytes> born(events), died(events);
  for (const Storage& one : trace.storages) {
    if (!one.from_before) born[one.born.value] += one.bytes;
    if (one.died.value < events) died[one.died.value] += one.bytes;
  }
  Levels levels{std::vector<Bytes>(events), std::vector<Bytes>(events)};
  const bool segments = knows_segments(trace);
  Bytes live = trace.live_before, reserved = trace.reserved_before;
  for (std::size_t i = 0; i < events; ++i) {
    live = live + born[i] - died[i];
    if (const auto* more = std::get_if<event::ReservedMore>(&trace.events[i].what)) reserved += more->bytes;
    if (const auto* less = std::get_if<event::ReservedLess>(&trace.events[i].what)) {
      reserved = saturating_sub(reserved, less->bytes);
    }
    levels.live[i] = live;
    levels.reserved[i] = segments ? reserved : live;
  }
  return levels;
}

std::optional<Moment> find(const Trace& trace, const Levels& levels, At at) {
  ULLAGE_CHECK(levels.live.size() == trace.events.size(), "levels of another trace");
  const std::size_t events = trace.events.size();
  switch (at) {
    case At::Peak: {
      const auto highest = std::ranges::max_element(levels.live);  // the first of several
      if (highest == levels.live.end() || *highest < trace.live_before) return after(trace, levels, std::nullopt);
      return after(trace, levels, EventId{std::uint64_t(highest - levels.live.begin())});
    }
    case At::OutOfMemory:
      for (std::size_t i = events; i-- > 0;) {
        if (std::holds_alternative<event::OutOfMemory>(trace.events[i].what)) return after(trace, levels, EventId{i});
      }
      return std::nullopt;
    case At::End:
      return after(trace, levels, events == 0 ? std::nullopt : std::optional(EventId{events - 1}));
  }
  return std::nullopt;
}

std::string_view owner_name(const Storage& storage, const std::vector<StackMeaning>& meanings) {
  ULLAGE_CHECK(storage.stack.value < meanings.size(), "meanings of other stacks");
  if (storage.from_before && storage.stack == StackId{}) return "from before the history";
  return meanings[storage.stack.value].name;
}

std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings) {
  return owners_at(trace, moment, meanings, categories(trace, meanings));
}

std::vector<Owner> owners_at(const Trace& trace, const Moment& moment, const std::vector<StackMeaning>& meanings,
                             const std::vector<Category>& by_storage) {
  std::vector<Owner> owners;
  std::vector<Bytes> largest;  // index as in owners: bytes of the storage that gives the stack
  std::map<std::pair<Category, std::string>, std::size_t> by_name;
  std::unordered_map<std::uint64_t, std::size_t> by_stack;  // avoids most look-ups in by_name
  for (std::size_t i = 0; i < trace.storages.size(); ++i) {
    const Storage& one = trace.storages[i];
    if (!is_live(one, moment)) continue;
    const bool no_stack = one.from_before && one.stack == StackId{};
    const auto [known, is_new] =
        by_stack.try_emplace(std::uint64_t(one.stack.value) * 32 + std::uint64_t(by_storage[i]) * 2 + no_stack);
    if (is_new) {
      const std::string name(owner_name(one, meanings));
      const auto [place, first] = by_name.try_emplace({by_storage[i], name}, owners.size());
      known->second = place->second;
      if (first) {
        owners.push_back({name, by_storage[i], {}, 0, one.stack});
        largest.emplace_back();
      }
    }
    Owner& owner = owners[known->second];
    owner.bytes += one.bytes;
    ++owner.storages;
    if (one.bytes <= largest[known->second]) continue;
    largest[known->second] = one.bytes;
    owner.stack = one.stack;
  }
  std::ranges::sort(owners, [](const Owner& a, const Owner& b) {
    return std::tie(b.bytes, a.category, a.name) < std::tie(a.bytes, b.category, b.name);
  });
  return owners;
}

}  // namespace ullage::trace
