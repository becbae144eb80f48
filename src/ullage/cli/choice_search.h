// SPDX-License-Identifier: Apache-2.0
#pragma once

// The largest value of an option that fits, where no law goes over it: each value is rehearsed by itself.

#include "ullage/cli/prediction_maker.h"

#include <optional>

namespace ullage::cli {

// Adds a row to the prediction for each choice of the program: upwards from what was asked for if that fits, else
// downwards. Nothing where no memory was asked about. A value whose rehearsal fails does not fit. A signal that came
// meanwhile is returned as the failure it is.
std::optional<Failure> add_largest_choices(const RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made);

}  // namespace ullage::cli
