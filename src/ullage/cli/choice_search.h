// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the largest value of an option that fits the memory asked about. It does so for choices (base/knob.h), options
// at whose other values the program may do other ops. So each value is rehearsed by itself. If a choice is a knob as
// well, there is a law for the values between those that were recorded. The search then begins at the largest value
// that fits by the law. Edit this to change how the rows "largest" of `ullage predict` are searched.

#include "ullage/cli/prediction_maker.h"

#include <optional>

namespace ullage::cli {

// Predicts the program with the choice at `value`, without asking whether it fits. Returns nothing if the rehearsal
// failed or the program is a command. If a signal ended the rehearsal, sets `stopped`. Does nothing once that is set.
std::optional<Made> predict_at(RecordedProgram& program, const Choice& choice, std::int64_t value,
                               predict::Question question, Progress& progress, std::optional<Failure>& stopped);

// Adds one row to `made.prediction.largest` for each choice of the program. Adds nothing if the question has no memory.
// - Numbers are bisected (value_search.h). If a larger number takes less memory, the row has the smallest that fits.
// - Words (Choice::words) are tried from the last one on, which is the most preferred, until one fits.
// - A value whose rehearsal fails counts as one that does not fit. If no value fits, the row has the value 0.
// - The row replaces the law's row of the same name. But if the value in the law's row is not among the option's
//   values, the law's row stays, and nothing is searched.
// - A rehearsal that the kernel killed has failed like any other. Only if a person ended it (Ctrl-C, a signal to
//   `ullage`) does the search end: then the failure is returned.
std::optional<Failure> add_largest_choices(RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made);

}  // namespace ullage::cli
