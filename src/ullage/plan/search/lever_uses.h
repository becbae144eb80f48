// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists for a person what a schedule does: a row for each use of a lever at one place of the step (site), with bytes
// and seconds. `ullage plan` shows the largest rows.

#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Describes the second of two steps that follow the schedule. Only that one begins with the copies that an earlier step
// left in the tier. `schedule` must pass the verifier. The seconds add up to its cost. `bytes` of a recompute are those
// of the values that it brings back; `bytes` of any other use are those of the storage. Sorted by bytes, largest first.
std::vector<LeverUse> lever_uses(const Step& step, const Schedule& schedule, const Rates& rates);

}  // namespace ullage::plan
