// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws the curve of a plan's page (`ullage plan --curve --html`): less memory against more time.

#include "ullage/report/plan_report.h"

#include <string>

namespace ullage::report {

// Returns an <svg> element that needs no script. To the right is --memory; upwards is the time added to the step, in %
// of it. It shows the plans, the lower bound, and where there is no plan. Empty if no curve was asked for.
std::string plan_curve_svg(const PlanReport& report);

// Returns the same as a table.
std::string plan_curve_table(const PlanReport& report);

}  // namespace ullage::report
