// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns the options of `ullage plan` into the question for the planner: memory, levers, step, rates, effort and seed.

#include "ullage/base/result.h"
#include "ullage/cli/plan_command.h"
#include "ullage/cli/plan_comparison.h"
#include "ullage/cli/plan_maker.h"

#include <optional>

namespace ullage::cli {

struct AskedPlan {
  PlanQuestion question;                  // its rates are filled in only if --rate states them
  std::optional<AllowedClasses> allowed;  // with --allow
};

// BadArgument says which option is wrong.
Result<AskedPlan> read_question(const PlanOptions& options);

}  // namespace ullage::cli
