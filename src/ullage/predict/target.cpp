// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/evaluation.h"

#include "ullage/base/check.h"

#include <algorithm>

namespace ullage::predict {

std::size_t Target::Hash::operator()(const std::vector<std::int64_t>& counts) const {
  std::uint64_t hash = 0;
  for (const std::int64_t count : counts) hash = (hash ^ std::uint64_t(count)) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

Target::Target(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs)
    : grid_(sequence.grid) {
  const std::vector<std::int64_t> own = grid_.values_of(knobs);
  set_of(own);
  const trace::Take& take = file.takes[0];
  EventId begin;
  std::size_t set = 0;
  const auto end_phase = [&](EventId end) {
    if (set == 0 || begin >= end) return;
    by_event_.resize(take.trace.events.size());
    const auto at = by_event_.begin();
    std::fill(at + std::ptrdiff_t(begin.value), at + std::ptrdiff_t(std::min(end, take.trace.end()).value), set);
  };
  for (const trace::ReportedBorder& border : take.borders) {
    if (border.what == trace::ReportedBorder::What::StepEnd) continue;
    end_phase(border.at);
    begin = border.at;
    set = 0;
    if (border.what == trace::ReportedBorder::What::PhaseEnd) continue;
    std::vector<std::int64_t> values = own;
    for (const Knob& most : border.knobs) {
      const auto axis = std::ranges::find(grid_.axes, most.name, &Grid::Axis::name);
      if (axis == grid_.axes.end()) continue;
      std::int64_t& value = values[std::size_t(axis - grid_.axes.begin())];
      value = std::min(value, most.value);
    }
    set = set_of(values);
  }
  end_phase(take.trace.end());
}

std::size_t Target::set_of(const std::vector<std::int64_t>& values) {
  const auto known = std::ranges::find(sets_, values, &Set::values);
  if (known != sets_.end()) return std::size_t(known - sets_.begin());
  sets_.push_back({values, Evaluator(grid_, values), {}});
  return sets_.size() - 1;
}

std::size_t Target::set_at(EventId event) const { return event.value < by_event_.size() ? by_event_[event.value] : 0; }

std::optional<std::int64_t> Target::count(EventId event, std::span<const std::int64_t> counts) {
  if (std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end()) return counts[0];
  Set& set = sets_[set_at(event)];
  const std::vector<std::int64_t> key(counts.begin(), counts.end());
  const auto [place, is_new] = set.known.try_emplace(key);
  if (is_new) place->second = set.evaluator(counts);
  return place->second;
}

}  // namespace ullage::predict
