// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan's terminal text and its page say alike.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/report/plan_report.h"

#include <string>
#include <vector>

namespace ullage::report {

// "+5.0 %", of the plain step; "+0 %" of nothing.
std::string percent_text(Seconds part, Seconds step);

// "Fits 310.00 MiB with a plan: tensors peak at ...", for the head of an answer.
std::string plan_headline(const PlanReport& report);

// The row of what the plan leaves free, so that memory_bar()'s add up.
Bytes kept_free(const PlanReport& report);
// The stated memory, or the least that would do where there is no plan, in parts that add up to it.
diagnose::Bar memory_bar(const PlanReport& report);

// All uses of one lever.
struct LeverTotal {
  std::string lever;
  std::size_t sites = 0;
  Bytes bytes;
  Seconds seconds;
};
// Most bytes first.
std::vector<LeverTotal> lever_totals(const plan::Plan& plan);

// "Where plain execution peaks (aten::convolution, forward), 136.00 MiB are present instead of 168.00 MiB"; empty
// without a plan.
std::string peak_sentence(const PlanReport& report);
// "With these levers the least is about --memory 280MiB, set by aten::convolution_backward net.0 (backward)"; empty
// where the headline says it, or nobody knows.
std::string least_sentence(const PlanReport& report);

}  // namespace ullage::report
