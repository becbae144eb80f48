// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives the histories of an input in one shape, whatever recorded them. These are the devices of a snapshot or a
// profile, or the takes of a trace. The page, the JSON and the converters use it.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

// What was deduced about a trace's storages and events.
struct Understanding {
  std::vector<trace::StackMeaning> meanings;  // index: StackId
  std::vector<trace::Category> categories;    // index: StorageId
  std::vector<trace::Phase> phases;           // index: EventId
  trace::Steps steps;
};
Understanding understanding_of(const trace::Trace& trace, const trace::Stacks& stacks);

struct InputHistory {
  std::string name;                  // "device 0", "batch=4"
  std::optional<trace::Trace> made;  // reconstructed from a snapshot
  const trace::Trace* lent = nullptr;
  const trace::DeviceRecording* recorded = nullptr;  // null unless the input is a snapshot
  const trace::Take* take = nullptr;                 // null unless the input is a trace
  const trace::Stacks* stacks = nullptr;             // lives, like `lent`, as long as the input
  Understanding known;

  const trace::Trace& trace() const { return made ? *made : *lent; }
};

// Returns the history of `diagnosis`, which is number `index` of `count` made from the input. Returns nothing if there
// is none, as for a log.
std::optional<InputHistory> history_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis,
                                       std::size_t index, std::size_t count);

// Visits every history once, in the input's order. Makes one at a time, because together they may be large.
void each_history(const trace::Input& input, const std::function<void(const InputHistory&)>& visit);

// Returns the stacks that the StackIds of the diagnosis refer to; null for a log.
const trace::Stacks* stacks_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis);

}  // namespace ullage::report
