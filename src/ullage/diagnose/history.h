// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out once, for all rules, what a recording says about one moment. That is who held the bytes, where the free
// memory lay, what the program was doing, and what grew from step to step. The recording is one device of a snapshot or
// profile, or one take of Ullage's own trace. If a rule needs a new fact of a recording, add it here.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/pool_layout.h"
#include "ullage/diagnose/roles.h"
#include "ullage/diagnose/signs.h"
#include "ullage/diagnose/take_facts.h"
#include "ullage/trace/input.h"
#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct History {
  // The pointers of one kind of recording are set; those of the other kinds are null.
  const trace::Recording* recording = nullptr;       // a snapshot
  const trace::DeviceRecording* recorded = nullptr;  // a snapshot: its device that is diagnosed
  const trace::Profile::Device* profiled = nullptr;  // a profile: its device that is diagnosed
  const trace::UnderstoodFile* file = nullptr;       // Ullage's own trace
  const trace::Take* take = nullptr;                 // Ullage's own trace: its take that is diagnosed
  const trace::TakeMeaning* meaning = nullptr;       // Ullage's own trace: what that take means
  const trace::Stacks* stacks = nullptr;             // of every kind: the stacks that `trace` refers to
  trace::Trace trace;
  std::vector<trace::StackMeaning> meanings;
  trace::Levels levels;
  trace::Moment moment;                                 // the moment that is diagnosed; "the moment" below
  trace::Moment peak;                                   // the moment of the most live bytes
  std::optional<trace::event::OutOfMemory> oom;         // set if a request failed at the moment
  std::uint64_t ooms = 0;                               // out-of-memory events in the whole history
  trace::Phase phase = trace::Phase::Unknown;           // of the moment
  Signs signs;                                          // of the stack at the moment
  std::vector<trace::Owner> owners;                     // at the moment
  std::array<Bytes, trace::kCategories> by_category{};  // of `owners`; index: trace::Category
  std::vector<trace::Category> categories;              // index: StorageId
  Roles roles;
  bool has_history = false;  // the recording has an allocation event
  trace::Steps steps;
  std::vector<trace::Growth> growth;  // here Growth::total counts only bytes that are still live at the moment
  Bytes reserved_peak;
  std::optional<PoolLayout> layout;
  bool device_is_cpu = false;
  bool watched = false;              // a snapshot that `ullage explain -- COMMAND` made
  bool autocast = false;             // the program ran under autocast
  std::optional<TakeFacts> told;     // of a take; else nothing
  std::vector<DeviceShare> devices;  // of a snapshot with several devices: all of them, this one too; else empty

  Bytes of(trace::Category category) const { return by_category[static_cast<std::size_t>(category)]; }
  bool failed() const { return oom.has_value(); }
};

// Fills in the rest of `history`, except `watched` and `devices`, which the caller sets. The caller must have set
// trace, stacks, device_is_cpu and the pointers of one kind of recording. `at` is the moment to diagnose; nothing: the
// last failed request, or the peak if none failed. False if the recording does not have that moment.
bool work_out(History& history, std::optional<trace::At> at);

}  // namespace ullage::diagnose
