// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the largest value of an option that fits the memory asked about. It is for options that no law covers (Choice,
// base/knob.h): each value is rehearsed separately. A choice may be a knob as well. Then the search goes on from the
// largest value that the law gave, because a law is tried at some values only.

#include "ullage/cli/prediction_maker.h"

#include <optional>

namespace ullage::cli {

// Adds one row to `made.prediction.largest` for each choice of the program. Numbers are bisected (value_search.h). If a
// larger number takes less memory, the row has the smallest that fits. Of words (Choice::words) it tries all, the last
// first, until one fits: no order of their bytes is known. A value whose rehearsal fails counts as one that does not
// fit. The row has the value 0 if none fits. It replaces the law's row of the same name, unless the law's answer is
// none of the option's values: then the law's row stays. Adds nothing if the question has no memory. Returns the
// failure if a signal ended a rehearsal.
std::optional<Failure> add_largest_choices(const RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made);

}  // namespace ullage::cli
