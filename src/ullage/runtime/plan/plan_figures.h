// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes into the ledger what the report shows of plans: how the run has kept to them so far, and the plan that it
// follows now.

#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/store/ledger.h"

namespace ullage::runtime {

// Call it when a step has ended and slot.steps counts it. At the first call after a plan was adopted,
// `plan_adopted_at_step` becomes slot.steps + 1.
void write_plan_figures(const PlanFollower& follower, store::LedgerSlot& slot);

}  // namespace ullage::runtime
