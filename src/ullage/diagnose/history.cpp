// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/history.h"

#include "ullage/diagnose/evidence.h"
#include "ullage/trace/meaning/lifetimes.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace ullage::diagnose {
namespace {

std::optional<trace::Moment> moment_asked_for(const History& history, std::optional<trace::At> at) {
  if (at) return find(history.trace, history.levels, *at);
  if (auto failed = find(history.trace, history.levels, trace::At::OutOfMemory)) return failed;
  return find(history.trace, history.levels, trace::At::Peak);
}

void look_at_moment(History& history, const std::vector<trace::Phase>& phases) {
  if (!history.moment.event) return;
  const std::size_t event = history.moment.event->value;
  if (event >= history.trace.events.size()) return;
  const trace::Event& at = history.trace.events[event];
  if (const auto* oom = std::get_if<trace::event::OutOfMemory>(&at.what)) history.oom = *oom;
  history.signs = signs_of(*history.stacks, at.stack);
  if (event < phases.size()) history.phase = phases[event];
}

void find_reserved_peak(History& history) {
  history.reserved_peak = history.trace.reserved_before;
  for (Bytes reserved : history.levels.reserved) history.reserved_peak = std::max(history.reserved_peak, reserved);
}

// A step's leftovers may be freed before the moment, or made after it. Counts only those that are live at the moment.
void keep_growth_that_is_live(History& history) {
  std::unordered_map<std::uint32_t, Bytes> live;
  for (const StorageId id : live_at(history.trace, history.moment)) {
    const trace::Storage& storage = history.trace.storages[id.value];
    Bytes& bytes = live[storage.stack.value];
    bytes = sum(bytes, storage.bytes).value_or(bytes);
  }
  for (trace::Growth& growth : history.growth) growth.total = std::min(growth.total, live[growth.stack.value]);
  std::erase_if(history.growth, [](const trace::Growth& growth) { return growth.total == Bytes{}; });
  std::ranges::stable_sort(history.growth, std::ranges::greater{}, &trace::Growth::total);
}

}  // namespace

bool work_out(History& history, std::optional<trace::At> at) {
  history.meanings = history.meaning ? history.meaning->meanings : trace::meanings(*history.stacks);
  for (const trace::StackMeaning& one : history.meanings) history.autocast |= one.autocast_cast || one.autocast_exit;
  history.levels = trace::levels(history.trace);
  const std::optional<trace::Moment> moment = moment_asked_for(history, at);
  if (!moment) return false;
  history.moment = *moment;
  history.peak = find(history.trace, history.levels, trace::At::Peak).value_or(*moment);
  for (const trace::Event& event : history.trace.events) {
    history.ooms += std::holds_alternative<trace::event::OutOfMemory>(event.what) ? 1 : 0;
    history.has_history |= std::holds_alternative<trace::event::Allocation>(event.what);
  }
  const std::vector<trace::Phase> phases =
      history.meaning ? history.meaning->phases : trace::phases(history.trace, history.meanings);
  look_at_moment(history, phases);
  history.categories =
      history.meaning ? history.meaning->categories : trace::categories(history.trace, history.meanings, phases);
  history.owners = trace::owners_at(history.trace, history.moment, history.meanings, history.categories);
  for (const trace::Owner& owner : history.owners) {
    history.by_category[static_cast<std::size_t>(owner.category)] += owner.bytes;
  }
  find_reserved_peak(history);
  history.steps = history.meaning ? history.meaning->steps
                                  : trace::find_steps(history.trace, history.meanings, phases, history.levels);
  history.growth = trace::growth(history.trace, history.steps, history.meanings);
  keep_growth_that_is_live(history);
  history.roles =
      roles(history.trace, *history.stacks, history.meanings, history.categories, history.steps, history.moment);
  if (history.recorded) history.layout = layout_at(*history.recorded, history.trace, history.moment, history.meanings);
  if (history.take) history.told = take_facts(*history.take, *history.meaning, history.moment);
  return true;
}

}  // namespace ullage::diagnose
