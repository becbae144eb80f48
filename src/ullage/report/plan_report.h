// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan, and the curve of budget against time, for people and for programs (docs/plan.md says how to read them;
// docs/cli.md has the fields of the JSON).

#include "ullage/plan/file/plan_file.h"
#include "ullage/plan/fit.h"
#include "ullage/report/diagnosis_report.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

struct PlanReport {
  std::string file;  // the trace, as named by the person
  plan::Step step;
  plan::BesideTensors beside;
  std::optional<plan::PlanFile> planned;                     // none: only the curve was asked for
  Table<plan::OpIndex, Bytes> plain_levels, planned_levels;  // the second is empty without a schedule
  std::vector<plan::Plan> curve;                             // ascending budgets; empty: not asked for
};

// The plan on about thirty lines, then the curve. `next`: the command to name at the end; empty: none. All names in a
// plan are untrusted.
void write_terminal(const PlanReport& report, const TerminalStyle& style, const std::string& next, std::ostream& out);

// One object and a line end: the plan's file with the field "curve" where one was asked for; the curve alone is an
// "ullage-plan-curve".
void write_json(const PlanReport& report, std::ostream& out);

// One page that needs no network: the timeline before and after, what is done, the curve.
void write_html(const PlanReport& report, std::ostream& out);

}  // namespace ullage::report
