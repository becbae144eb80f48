// SPDX-License-Identifier: Apache-2.0
#pragma once

// `ullage run --allow rounding,different PROGRAM`: finds the way to run a shipped program that takes the least time of
// those that fit. A way is the program as it is, or with another value of one option that does the same work with other
// results (Choice::results). Edit this to change which ways are looked at.

#include "ullage/cli/plan_comparison.h"
#include "ullage/cli/recorded_program.h"
#include "ullage/report/plan_report.h"

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace ullage::cli {

struct WaysFound {
  std::vector<report::ComparedWay> ways;  // the first is the program as it is; figures are predicted
  std::vector<std::string> words;         // of the chosen way; as they were if nothing that is allowed fits
};

// Predicts each way, and plans it if it does not fit `memory`. `words` are the program's name and its arguments.
// - If the program fits as it is, or with a plan that adds little (plan::kLittleTime), no other way is looked at.
// - Of an option with words, all words before the present one are looked at. Of one with numbers, one number is: the
//   largest below the present one that fits without a plan, or if none does, the number that takes least.
// - A value whose rehearsal fails is left out.
// Returns a failure if the program as it is cannot be predicted, or a signal came.
std::variant<WaysFound, Failure> search_ways(RecordedProgram& program, const std::vector<std::string>& words,
                                             const AllowedClasses& allowed, Bytes memory, Progress& progress,
                                             std::ostream& err);

}  // namespace ullage::cli
