// SPDX-License-Identifier: Apache-2.0
#pragma once

// Annotations as ranges of events: an annotation has a time, and so have events.

#include "ullage/trace/recording/trace.h"

#include <string_view>
#include <vector>

namespace ullage::trace {

struct Annotated {
  std::string_view name;  // of the trace's annotation
  EventId begin, end;     // the events in between: [begin, end)
  bool closed = true;     // false: it has no end in the file
};

// In the order of their ends; one without an end lasts to the end, an end without a start is left out. Empty where
// the events have no times, or times that go backwards.
std::vector<Annotated> annotated(const Trace& trace);

}  // namespace ullage::trace
