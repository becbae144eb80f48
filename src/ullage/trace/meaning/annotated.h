// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds which events lie inside each annotation of a trace ("ProfilerStep#7", "Optimizer.step"), by comparing the times
// of events and annotations. The functions of steps.h find steps and phases with it, if a trace has annotations.

#include "ullage/trace/recording/trace.h"

#include <string_view>
#include <vector>

namespace ullage::trace {

struct Annotated {
  std::string_view name;  // of the trace's annotation
  EventId begin, end;     // the events inside are [begin, end)
  bool closed = true;     // false: the file has no end for it
};

// In the order of their ends. Annotations of one name nest. One without an end comes last and lasts to the end of the
// trace; an end without a start is ignored. Empty if the events have no times, or times that go backwards.
std::vector<Annotated> annotated(const Trace& trace);

}  // namespace ullage::trace
