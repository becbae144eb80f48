// SPDX-License-Identifier: Apache-2.0
#pragma once

// Budget against time, drawn.

#include "ullage/report/plan_report.h"

#include <string>

namespace ullage::report {

// An <svg> element that needs no script: --memory to the right, seconds added to the step upwards, in % of it; the
// plans, the bound below them, and where there is no plan. Empty where no curve was asked for.
std::string plan_curve_svg(const PlanReport& report);

// The same as rows of a table.
std::string plan_curve_table(const PlanReport& report);

}  // namespace ullage::report
