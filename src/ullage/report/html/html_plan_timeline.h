// SPDX-License-Identifier: Apache-2.0
#pragma once

// The data from which the HTML page of a plan draws its two timelines (page/plan.js): the step without the plan, and
// with it.

#include "ullage/report/plan_report.h"

#include <string>

namespace ullage::report {

// Returns JSON that can be put into a script element ('<' is escaped). For each op of the step it has the bytes of
// tensors present without and with the plan, the name, the phase and the time in microseconds. It also has the budget
// and the plan's actions, each with its op: spilled, read back, given up, run again and so on. If there is no plan, the
// bytes with the plan are null. Bytes are written as differences from op to op.
std::string plan_timeline_json(const PlanReport& report);

}  // namespace ullage::report
