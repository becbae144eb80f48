// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares the ways to run one program, of which some change its results (trace::ResultChange). Each is planned for the
// same memory, and the cheapest that is allowed is chosen. For `ullage plan --allow CLASSES FILE...` they were
// recorded, for `ullage run --allow CLASSES PROGRAM` they are predicted (way_search.h).

#include "ullage/base/result.h"
#include "ullage/report/plan_report.h"
#include "ullage/trace/take/take.h"

#include <span>
#include <string>
#include <vector>

namespace ullage::cli {

// Which classes of changes may be chosen; bit-equal ones always may.
struct AllowedClasses {
  bool rounding = false;
  bool different = false;

  bool allows(plan::Lever::Results results) const;
};

// Reads the value of --allow: "rounding", "different", with commas between. BadArgument says what is allowed.
Result<AllowedClasses> parse_classes(const std::string& text);

// The class of a recording is the class of its worst change.
plan::Lever::Results results_of(std::span<const trace::ResultChange> changes);

// Returns the row of a program that was planned; `changes` are what its options change. Leaves `allowed` and `chosen`
// as they are at first.
report::ComparedWay way_of(const report::PlanReport& report, std::span<const trace::ResultChange> changes);

// Fills in `allowed` and `chosen`; returns the index of the chosen one. If bit-equal recordings fit without a plan, one
// of them is chosen; else one of all allowed ways that fit, with a plan or without. Of these ways the one that takes
// the least time is chosen; of two equal ones, the earlier in `ways`. If nothing allowed fits, returns the allowed one
// with the smallest least memory, and sets `chosen` nowhere.
std::size_t choose(std::vector<report::ComparedWay>& ways, const AllowedClasses& allowed);

}  // namespace ullage::cli
