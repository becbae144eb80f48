// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where one step of the program ends and the next begins, which phase each event belongs to, and what grows from step
// to step. From annotations where the file has them (Optimizer.step), else from stacks, else from the period of the
// sequence of allocations. A program that calls several optimizers has one step for all of them: it ends with the
// optimizer that is called least often.

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/recording/trace.h"

#include <string>
#include <vector>

namespace ullage::trace {

// Index: EventId. An event's own stack decides, then an annotation around it, then the event before it, unless its
// stack would show that phase. An allocation with no stack among others with Python frames alone was made by a thread
// without Python, the autograd engine's.
std::vector<Phase> phases(const Trace& trace, const std::vector<StackMeaning>& meanings);

struct Steps {
  enum class From { Nothing, Annotations, Stacks, Period, Recorded };
  From from = From::Nothing;
  // Step i is [begins[i], begins[i + 1]), the last one up to the end. The first begins at event 0 and holds the loading
  // too, or what the recording has of a step that began before it.
  std::vector<EventId> begins;
  bool last_is_whole = false;  // else the end may have cut it off

  std::size_t whole() const { return begins.empty() ? 0 : begins.size() - (last_is_whole ? 0 : 1); }
};
Steps find_steps(const Trace& trace, const std::vector<StackMeaning>& meanings);

// Bytes that one stack leaves behind in step after step: born in one and alive at the end of the next, less what died
// of that. Not counted are the first step (loading, the optimizer's state) and what stops growing: growth goes on in at
// least half of the steps up to the end, or up to where it is given back (the end of an epoch), and in at least three.
struct Growth {
  StackId stack;
  std::string name;
  Bytes per_step;              // median of the steps in which it grew
  std::uint64_t steps = 0;     // in which it grew
  std::uint64_t of_steps = 0;  // that were looked at, from the first in which it grew
  Bytes total;                 // what they left behind, all together
};
// Largest first.
std::vector<Growth> growth(const Trace& trace, const Steps& steps, const std::vector<StackMeaning>& meanings);

}  // namespace ullage::trace
