// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a recording (of one device: a snapshot or a profile; or one take of Ullage's own) says at one moment, worked out
// once for all rules: who held the bytes, how the pool lay, what the program was doing, what grew from step to step.

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
  const trace::Recording* recording = nullptr;       // null for a profile
  const trace::DeviceRecording* recorded = nullptr;  // likewise
  const trace::Profile::Device* profiled = nullptr;  // null but for a profile
  const trace::UnderstoodFile* file = nullptr;       // null but for Ullage's own, as the two below
  const trace::Take* take = nullptr;
  const trace::TakeMeaning* meaning = nullptr;
  const trace::Stacks* stacks = nullptr;
  trace::Trace trace;
  std::vector<trace::StackMeaning> meanings;
  trace::Levels levels;
  trace::Moment moment;
  trace::Moment peak;                                   // of live bytes
  std::optional<trace::event::OutOfMemory> oom;         // the failure, when the moment is one
  std::uint64_t ooms = 0;                               // in the whole history
  trace::Phase phase = trace::Phase::Unknown;           // of the moment
  Signs signs;                                          // of the stack at the moment
  std::vector<trace::Owner> owners;                     // at the moment
  std::array<Bytes, trace::kCategories> by_category{};  // of `owners`; index: trace::Category
  std::vector<trace::Category> categories;              // index: StorageId
  Roles roles;
  bool has_history = false;  // more than a stray event
  trace::Steps steps;
  std::vector<trace::Growth> growth;
  Bytes reserved_peak;
  std::optional<PoolLayout> layout;
  bool device_is_cpu = false;
  std::optional<TakeFacts> told;  // of a take

  Bytes of(trace::Category category) const { return by_category[static_cast<std::size_t>(category)]; }
  bool failed() const { return oom.has_value(); }
};

// What must be filled in before: trace, stacks and one of recorded, profiled or all that is of a take. False: it has
// nothing at the moment asked for.
bool work_out(History& history, std::optional<trace::At> at);

}  // namespace ullage::diagnose
