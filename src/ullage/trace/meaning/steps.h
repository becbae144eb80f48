// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the steps of a program begin and end, which phase each event belongs to, and what grows from step to step.
// Steps come from annotations if the file has them (Optimizer.step), else from stacks, else from the period in the
// sequence of allocations. If a program calls several optimizers, a step ends with the one that is called most rarely.
// A loop after the last call of an optimizer, such as an evaluation, is divided by its period.

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <string>
#include <vector>

namespace ullage::trace {

// The phase of each event. Index: EventId. The event's own stack decides. If that shows no phase, an annotation around
// the event decides. If there is none, the event has the phase of the event before it, unless it has a stack that would
// show that phase. If the trace has stacks of Python frames only, an allocation without a stack is Backward, even
// inside an annotation: a thread of the autograd engine made it.
std::vector<Phase> phases(const Trace& trace, const std::vector<StackMeaning>& meanings);

struct Steps {
  enum class From { Nothing, Annotations, Stacks, Period, Recorded };  // Recorded: of a take, see take_steps.h
  From from = From::Nothing;
  // Step i is [begins[i], begins[i + 1]); the last one goes up to the end. The first step begins at event 0. It
  // includes the loading, or is the rest of a step that began before the recording.
  std::vector<EventId> begins;
  bool last_is_whole = false;  // false: the end may cut the last step off

  std::size_t whole() const { return begins.empty() ? 0 : begins.size() - (last_is_whole ? 0 : 1); }
};
Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings);
// The same, for callers that have the phases() and levels() of the trace already.
Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings, const std::vector<Phase>& by_event,
                 const Levels& level);

// Bytes that one stack leaves behind in step after step. Counts storages that are born in a step and alive at the end
// of the next, less those of them that die later. The first step does not count (loading, optimizer state). It is a
// growth only if it happens in at least three steps, and in at least half of the steps up to its end. It ends when the
// bytes are freed (end of an epoch), or with the recording.
struct Growth {
  StackId stack;
  std::string name;
  Bytes per_step;              // median of the steps in which it grew
  std::uint64_t steps = 0;     // number of those steps
  std::uint64_t of_steps = 0;  // number of all steps from the first of those on
  Bytes total;                 // sum over those steps
};
// Largest first.
std::vector<Growth> growth(const Trace& trace, const Steps& steps, const std::vector<StackMeaning>& meanings);

}  // namespace ullage::trace
