// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a plan and the curve of budget against time, for people and for programs. docs/plan.md says how to read them;
// docs/cli.md has the fields of the JSON.

#include "ullage/plan/file/plan_file.h"
#include "ullage/plan/fit.h"
#include "ullage/report/diagnosis_report.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

// One way to run a program, as recorded or as predicted. It is planned for the same memory as the program's other ways.
struct ComparedWay {
  std::string file;                  // of the recording; empty if it was predicted
  std::vector<std::string> changes;  // the options that change the results: "--allow bf16"
  plan::Lever::Results results = plan::Lever::Results::BitEqual;
  plan::Plan::Outcome outcome = plan::Plan::Outcome::Fits;
  Bytes plain_peak, peak;  // of tensors; peak: as planned
  Bytes least;             // of the process: if infeasible, a budget that would do; else below it no plan exists
  Seconds step, overhead;  // of the step as recorded, and what the plan adds
  bool allowed = true;
  bool chosen = false;

  Seconds seconds() const { return Seconds{step.count + overhead.count}; }
};

struct PlanReport {
  std::string file;  // the trace's name, as the person wrote it
  plan::Step step;
  plan::BesideTensors beside;
  std::optional<plan::PlanFile> planned;                     // none: only the curve was asked for
  Table<plan::OpIndex, Bytes> plain_levels, planned_levels;  // the second is empty without a schedule
  std::vector<plan::Plan> curve;                             // by ascending budget; empty: not asked for
  std::vector<ComparedWay> ways;  // `plan --allow`: all recordings; the rest of the report is of the chosen one
};

// Writes the plan in about thirty lines, then the curve. `next` is the command to show at the end; empty: none. All
// names in a plan are untrusted.
void write_terminal(const PlanReport& report, const TerminalStyle& style, const std::string& next, std::ostream& out);

// Writes one object and a line end: the plan's file, with the field "beside". It also has "curve" if a curve was asked
// for, and "ways" and "class" if recordings were compared. Without a plan it is an "ullage-plan-curve".
void write_json(const PlanReport& report, std::ostream& out);

// Writes one page that needs no network: the timeline before and after, what is done, and the curve.
void write_html(const PlanReport& report, std::ostream& out);

}  // namespace ullage::report
