// SPDX-License-Identifier: Apache-2.0
#pragma once

// Texts about a plan that the answer in the terminal and the HTML page have in common.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/report/plan_report.h"

#include <span>
#include <string>
#include <vector>

namespace ullage::report {

// Returns `part` in percent of the plain step: "+5.0 %", "<0.1 %", or "+0 %" for no time. Returns "-" if the step has
// no time.
std::string percent_text(Seconds part, Seconds step);

// Returns the head of an answer: "Fits 310.00 MiB with a plan: tensors peak at ...".
std::string plan_headline(const PlanReport& report);

// What was chosen and why: "--micro-batch 4 (different): the cheapest that fits, 792.9 ms a step". Empty if no way was.
std::string choice_text(std::span<const ComparedWay> ways);
// The same as the line of `plan --allow`; "" if there was nothing to choose from.
std::string choice_sentence(const PlanReport& report);
// A way's options that change results; "as it is" if there are none.
std::string way_text(const ComparedWay& way);

// Bytes that the plan leaves free for the run. They make the rows of memory_bar() add up.
Bytes kept_free(const PlanReport& report);
// Returns the stated memory in parts that add up to it. If there is no plan: the least memory that would do.
diagnose::Bar memory_bar(const PlanReport& report);

// The sum of all uses of one lever.
struct LeverTotal {
  std::string lever;
  std::size_t sites = 0;
  Bytes bytes;
  Seconds seconds;
};
// Returns the levers, the one with most bytes first.
std::vector<LeverTotal> lever_totals(const plan::Plan& plan);

// Returns "Where plain execution peaks (aten::convolution, forward), 136.00 MiB are present instead of 168.00 MiB";
// empty without a plan.
std::string peak_sentence(const PlanReport& report);
// Returns "With these levers the least is about --memory 280MiB, set by aten::convolution_backward net.0 (backward)".
// Returns an empty text if the headline says it, or if the least is not known.
std::string least_sentence(const PlanReport& report);

}  // namespace ullage::report
