// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ullage/runtime/plan/plan_follower.h"
#include "ullage/store/ledger.h"

namespace ullage::runtime {

// What the report tells of plans: how the run has kept to them so far, and the one that it follows now. Called where a
// step has ended, so that the first plan was adopted in the step after those that the slot has counted before.
void write_plan_figures(const PlanFollower& follower, store::LedgerSlot& slot);

}  // namespace ullage::runtime
