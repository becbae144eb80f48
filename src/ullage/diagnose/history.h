// SPDX-License-Identifier: Apache-2.0
#pragma once

// Works out once, for all rules, what a recording says about one moment. That is who held the bytes, where the free
// memory lay, what the program was doing, and what grew from step to step. The recording is one device of a snapshot or
// profile, or one take of Ullage's own trace.

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
  const trace::Recording* recording = nullptr;       // only of a snapshot, as `recorded`; else null
  const trace::DeviceRecording* recorded = nullptr;  // the same recording's device
  const trace::Profile::Device* profiled = nullptr;  // only of a profile; else null
  const trace::UnderstoodFile* file = nullptr;       // only of Ullage's own trace, as the next two; else null
  const trace::Take* take = nullptr;
  const trace::TakeMeaning* meaning = nullptr;
  const trace::Stacks* stacks = nullptr;
  trace::Trace trace;
  std::vector<trace::StackMeaning> meanings;
  trace::Levels levels;
  trace::Moment moment;
  trace::Moment peak;                                   // of live bytes
  std::optional<trace::event::OutOfMemory> oom;         // set if the moment is a failure
  std::uint64_t ooms = 0;                               // out-of-memory events in the whole history
  trace::Phase phase = trace::Phase::Unknown;           // of the moment
  Signs signs;                                          // of the stack at the moment
  std::vector<trace::Owner> owners;                     // at the moment
  std::array<Bytes, trace::kCategories> by_category{};  // of `owners`; index: trace::Category
  std::vector<trace::Category> categories;              // index: StorageId
  Roles roles;
  bool has_history = false;  // the recording has an allocation event
  trace::Steps steps;
  std::vector<trace::Growth> growth;  // Growth::total: only what is still live at the moment
  Bytes reserved_peak;
  std::optional<PoolLayout> layout;
  bool device_is_cpu = false;
  bool watched = false;              // as in Question
  bool autocast = false;             // the program ran under autocast
  std::optional<TakeFacts> told;     // only of a take
  std::vector<DeviceShare> devices;  // of a snapshot with several devices: all of them, this one too; else empty

  Bytes of(trace::Category category) const { return by_category[static_cast<std::size_t>(category)]; }
  bool failed() const { return oom.has_value(); }
};

// Fills in the rest of `history`. The caller must have set trace, stacks, device_is_cpu and the pointers of one kind of
// recording. False if the recording does not have the moment asked for.
bool work_out(History& history, std::optional<trace::At> at);

}  // namespace ullage::diagnose
