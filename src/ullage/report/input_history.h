// SPDX-License-Identifier: Apache-2.0
#pragma once

// The histories of an input in one shape, whoever recorded them: the devices of a snapshot or a profile, the takes of a
// trace.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/trace/input.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

// What is known of a trace's storages and events.
struct Understanding {
  std::vector<trace::StackMeaning> meanings;  // index: StackId
  std::vector<trace::Category> categories;    // index: StorageId
  std::vector<trace::Phase> phases;           // index: EventId
  trace::Steps steps;
};
Understanding understanding_of(const trace::Trace& trace, const trace::Stacks& stacks);

struct InputHistory {
  std::string name;                  // "device 0", "batch=4"
  std::optional<trace::Trace> made;  // put together from a snapshot
  const trace::Trace* lent = nullptr;
  const trace::DeviceRecording* recorded = nullptr;  // null but for a snapshot
  const trace::Take* take = nullptr;                 // null but for a trace
  const trace::Stacks* stacks = nullptr;             // lives, like what is lent, as long as the input
  Understanding known;

  const trace::Trace& trace() const { return made ? *made : *lent; }
};

// That of a diagnosis, the `index`th of `count` made of the input. None: a log has no history.
std::optional<InputHistory> history_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis,
                                       std::size_t index, std::size_t count);

// Each of them once, in the input's order; one at a time, since together they may be large.
void each_history(const trace::Input& input, const std::function<void(const InputHistory&)>& visit);

// Where the frames of the diagnosis' StackIds are; null for a log.
const trace::Stacks* stacks_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis);

}  // namespace ullage::report
