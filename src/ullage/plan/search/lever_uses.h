// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a schedule does, lever by lever and site by site, for a person.

#include "ullage/plan/model/plan.h"

namespace ullage::plan {

// Of a step that follows one under the same schedule; its seconds add up to what the schedule costs. Bytes: of a
// recompute those of the values that it brings back, else of the storage. Largest bytes first. The schedule passes the
// verifier.
std::vector<LeverUse> lever_uses(const Step& step, const Schedule& schedule, const Rates& rates);

}  // namespace ullage::plan
