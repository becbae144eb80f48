// SPDX-License-Identifier: Apache-2.0
#pragma once

// Do the parts of a plan that was read fit together? Indices are within their lists already. Whether the plan is right
// is the verifier's to say, with the step before it; here is what can be seen of the plan alone.

#include "ullage/plan/file/plan_file.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ullage::plan {

struct Misfit {
  std::string place;    // "schedule[3].op"
  std::string message;  // as Error::message
};

// One more than the highest value that anything in the plan names; zero where nothing names one.
std::uint64_t values_named(const PlanFile& file);

// The first thing that cannot be; nothing where all fits.
std::optional<Misfit> misfit(const PlanFile& file);

}  // namespace ullage::plan
