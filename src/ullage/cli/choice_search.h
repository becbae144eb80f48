// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the largest value of an option that fits the memory asked about. It is for options that no law covers (Choice,
// base/knob.h): each value is rehearsed separately.

#include "ullage/cli/prediction_maker.h"

#include <optional>

namespace ullage::cli {

// Adds one row to `made.prediction.largest` for each choice of the program. Tries larger values while they fit if the
// value asked for fits, else smaller ones until one fits. A value whose rehearsal fails counts as one that does not
// fit. Adds nothing if the question has no memory. Returns the failure if a signal ended a rehearsal.
std::optional<Failure> add_largest_choices(const RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made);

}  // namespace ullage::cli
