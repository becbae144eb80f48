// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan's page draws its two timelines from (page/plan.js).

#include "ullage/report/plan_report.h"

#include <string>

namespace ullage::report {

// JSON that may stand in a script element: levels before and after, ops with phases and times, what is done at each.
std::string plan_timeline_json(const PlanReport& report);

}  // namespace ullage::report
