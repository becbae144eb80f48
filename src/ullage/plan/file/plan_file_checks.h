// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds contradictions in a plan that was read. It assumes that the reader has checked all indices of ops against their
// list. Only the verifier, which has the step, can say whether the plan is right; these checks see the plan alone.

#include "ullage/plan/file/plan_file.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ullage::plan {

struct Misfit {
  std::string place;    // "schedule[3].op"
  std::string message;  // as Error::message
};

// Returns one more than the highest ValueIndex that the plan names anywhere; zero if it names none. Values have no list
// in the file, only their number (Sites::values).
std::uint64_t values_named(const PlanFile& file);

// Returns the first contradiction; nothing if there is none.
std::optional<Misfit> misfit(const PlanFile& file);

}  // namespace ullage::plan
