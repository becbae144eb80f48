// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the use of a storage in finer terms than its category. Examples are logits, attention scores, and the copy of a
// parameter that was read from a file. The functions in its stack decide. For LoadedAgain, what else is live counts
// too; for OldGradient, its category and the step in which it was made decide. A storage has at most one of Logits,
// AttentionScores and Cache, so their bytes may be added.

#include "ullage/trace/meaning/levels.h"
#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/recording/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ullage::diagnose {

enum class Role : std::uint8_t {
  Logits = 1,           // of 1 MiB or more
  AttentionScores = 2,  // of 1 MiB or more
  Cache = 4,            // keys and values of a generation
  Evaluation = 8,       // an activation made in an evaluation
  Foreach = 16,         // a temporary of a foreach optimizer
  LoadedAgain = 32,     // read from a file, and a parameter of the same size that was not read from one is live too
  OldGradient = 64,     // a gradient from a step before the moment's
};

// The storages of one role that are live at the moment, and the place (`where`) of the largest.
struct Kind {
  Bytes bytes;
  std::uint64_t storages = 0;
  Bytes largest;
  std::string where;
};

struct Roles {
  std::vector<std::uint8_t> of;   // bits of Role; index: StorageId
  std::array<Kind, 7> at_moment;  // by bit
  Bytes made_in_evaluation;       // of Role::Evaluation, made up to the moment, also if freed since; at most 2^63
  bool trains = false;            // some stack belongs to a backward pass or an optimizer
  bool foreach = false;           // some stack belongs to a foreach optimizer

  const Kind& kind(Role role) const;
};

Roles roles(const trace::Trace& trace, const trace::Stacks& stacks, const std::vector<trace::StackMeaning>& meanings,
            const std::vector<trace::Category>& categories, const trace::Steps& steps, const trace::Moment& moment);

}  // namespace ullage::diagnose
