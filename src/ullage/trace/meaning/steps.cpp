// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/steps.h"

#include "ullage/base/check.h"
#include "ullage/trace/meaning/annotated.h"
#include "ullage/trace/meaning/period.h"
#include "ullage/trace/meaning/rarest_call.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace ullage::trace {
namespace {

// Names an optimizer in the same way in every step: its annotation and the frame that calls its step.
using Which = std::pair<std::string_view, std::optional<FrameId>>;

// One call of an optimizer's step.
struct OptimizerCall {
  Which which;
  EventId end;
};

std::vector<OptimizerCall> annotated_calls(const Trace& trace, const std::vector<StackMeaning>& meanings) {
  // Index: EventId. The first event from there on whose stack shows the caller of an optimizer.
  std::vector<std::size_t> next(trace.events.size() + 1, trace.events.size());
  for (std::size_t i = trace.events.size(); i-- > 0;) {
    next[i] = meanings[trace.events[i].stack.value].step_call ? i : next[i + 1];
  }
  std::vector<OptimizerCall> calls;
  for (const Annotated& one : annotated(trace)) {
    if (!one.name.starts_with("Optimizer.step#") || !one.closed) continue;
    const std::size_t known = next[one.begin.value];
    const bool within = known < one.end.value;
    calls.push_back({{one.name, within ? meanings[trace.events[known].stack.value].step_call : std::nullopt}, one.end});
  }
  return calls;
}

std::vector<OptimizerCall> calls_by_stack(const Trace& trace, const std::vector<StackMeaning>& meanings,
                                          const std::vector<Phase>& by_event) {
  std::vector<OptimizerCall> calls;
  bool open = false;
  for (std::size_t i = 0; i < by_event.size(); ++i) {
    const auto& caller = meanings[trace.events[i].stack.value].step_call;
    if (by_event[i] != Phase::Optimizer) {
      open = false;
    } else if (caller && (!open || calls.back().which.second != caller)) {
      calls.push_back({{{}, caller}, {i + 1}});
      open = true;
    } else if (open) {
      calls.back().end = EventId{i + 1};
    }
  }
  return calls;
}

// The ends of steps: the ends of the calls of the chosen optimizer.
std::vector<EventId> ends_of_steps(const std::vector<OptimizerCall>& calls) {
  std::map<Which, std::size_t> numbers;
  std::vector<std::uint64_t> counts;
  for (const OptimizerCall& one : calls) {
    const auto [found, is_new] = numbers.try_emplace(one.which, counts.size());
    if (is_new) counts.push_back(0);
    ++counts[found->second];
  }
  const std::size_t chosen = rarest_call(counts);
  std::vector<EventId> ends;
  for (const OptimizerCall& one : calls) {
    if (numbers[one.which] == chosen) ends.push_back(one.end);
  }
  return ends;
}

// The allocations from an event on, as a sequence for find_turns().
struct Allocations {
  std::vector<EventId> events;
  std::vector<StackId> stacks;         // empty if none were recorded
  std::vector<std::uint64_t> symbols;  // the stacks, or the sizes if there are no stacks
  std::vector<std::uint64_t> levels;   // live bytes before the allocation
};

Allocations allocations_from(const Trace& trace, const Levels& level, EventId from) {
  Allocations found;
  bool any_stack = false;
  for (std::uint64_t i = from.value; i < trace.events.size(); ++i) {
    const auto* born = std::get_if<event::Allocation>(&trace.events[i].what);
    if (born == nullptr) continue;
    const Storage& one = trace.storages[born->storage.value];
    found.events.push_back(EventId{i});
    found.symbols.push_back(one.bytes.count);
    found.stacks.push_back(one.stack);
    found.levels.push_back(i == 0 ? trace.live_before.count : level.live[i - 1].count);
    any_stack |= one.stack != StackId{};
  }
  if (!any_stack) {
    found.stacks.clear();
  } else {
    std::ranges::transform(found.stacks, found.symbols.begin(), &StackId::value);
  }
  return found;
}

// The calls of modules that two stacks share.
std::span<const std::uint64_t> shared(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return a.first(std::size_t(std::ranges::mismatch(a, b).in1 - a.begin()));
}

// Whether the turns are steps. The layers of one pass are turns too, but not steps. They are all in one call of the
// model, and so is what comes before and after them (the embedding, the head). If there is nothing before and after, or
// there are no stacks, turns are steps if all begin at about the same level. The layers of a training pass do not.
bool are_steps(const std::vector<StackMeaning>& meanings, const Allocations& all,
               const std::vector<std::size_t>& turns) {
  if (all.stacks.empty()) return begin_level(all.levels, turns);
  const auto calls = [&](std::size_t i) { return std::span(meanings[all.stacks[i].value].module_calls); };
  std::span<const std::uint64_t> common = calls(turns.front());
  for (std::size_t i = turns.front(); i < turns.back(); ++i) {
    if (meanings[all.stacks[i].value].phase == Phase::Backward) return true;
    common = shared(common, calls(i));
  }
  if (common.empty()) return true;
  const std::size_t turn = turns[1] - turns[0];
  const std::size_t begin = turns.front() - std::min(turns.front(), turn);
  const std::size_t end = std::min(all.events.size(), turns.back() + 2 * turn);
  for (std::size_t i = begin; i < end; ++i) {
    const auto here = shared(common, calls(i));
    if (!here.empty() && here.size() < common.size()) return false;
  }
  return begin_level(all.levels, turns);
}

// The begins of a loop's turns from an event on. Empty if there are fewer than three turns, or the turns are no steps.
std::vector<EventId> turns_from(const Trace& trace, const std::vector<StackMeaning>& meanings, const Levels& level,
                                EventId from) {
  const Allocations all = allocations_from(trace, level, from);
  const std::vector<std::size_t> turns = find_turns(all.symbols, all.levels);
  std::vector<EventId> begins;
  if (turns.empty() || !are_steps(meanings, all, turns)) return begins;
  for (const std::size_t turn : turns) begins.push_back(all.events[turn]);
  return begins;
}

}  // namespace

Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings) {
  return find_steps(trace, meanings, phases(trace, meanings), levels(trace));
}

Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings, const std::vector<Phase>& by_event,
                 const Levels& level) {
  ULLAGE_CHECK(by_event.size() == trace.events.size(), "phases of another trace");
  ULLAGE_CHECK(level.live.size() == trace.events.size(), "levels of another trace");
  for (const Event& one : trace.events) {
    ULLAGE_CHECK(one.stack.value < meanings.size(), "meanings of other stacks");
  }
  Steps steps;
  if (trace.events.empty()) return steps;
  std::vector<OptimizerCall> calls = annotated_calls(trace, meanings);
  if (!calls.empty()) steps.from = Steps::From::Annotations;
  if (calls.empty()) {
    calls = calls_by_stack(trace, meanings, by_event);
    if (!calls.empty()) steps.from = Steps::From::Stacks;
  }
  EventId last{};
  if (!calls.empty()) {
    steps.begins.push_back(EventId{});
    for (const EventId end : ends_of_steps(calls)) {
      last = end;
      steps.last_is_whole = end == trace.end();
      if (!steps.last_is_whole && end > steps.begins.back()) steps.begins.push_back(end);
    }
  }
  // Looks for a loop without an optimizer: in the whole trace, or after the last call of one (an evaluation).
  const std::vector<EventId> turns = turns_from(trace, meanings, level, last);
  if (turns.empty()) return steps;
  if (steps.from == Steps::From::Nothing) {
    steps.from = Steps::From::Period;
    steps.begins.push_back(EventId{});
  }
  for (const EventId turn : turns) {
    if (turn > steps.begins.back()) steps.begins.push_back(turn);
  }
  steps.last_is_whole = false;
  return steps;
}

}  // namespace ullage::trace
