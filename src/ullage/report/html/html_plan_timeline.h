// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data from which a plan's page draws its two timelines (page/plan.js).

#include "ullage/report/plan_report.h"

#include <string>

namespace ullage::report {

// Returns JSON that can be put into a script element. It has the levels before and after, the ops with phases and
// times, and the actions at each op.
std::string plan_timeline_json(const PlanReport& report);

}  // namespace ullage::report
