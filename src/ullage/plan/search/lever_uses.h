// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists for a person what a schedule does, by lever and site.

#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Describes a step that follows another one under the same schedule, which must pass the verifier. The seconds add up
// to the cost of the schedule. The bytes are those of the values that a recompute brings back, else of the storage.
// Sorted by bytes, largest first.
std::vector<LeverUse> lever_uses(const Step& step, const Schedule& schedule, const Rates& rates);

}  // namespace ullage::plan
