// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a program to a prediction: takes at small sizes, other sizes where these do not tell, and in the end a run at
// the very size.

#include "ullage/cli/recorded_program.h"
#include "ullage/predict/predict.h"

#include <iosfwd>
#include <variant>

namespace ullage::cli {

struct Made {
  predict::Prediction prediction;
  trace::TraceFile takes;  // that it was made from
};

// `question.at` is that of the takes. What is tried, and why, is said on `err`.
std::variant<Made, Failure> make_prediction(RecordedProgram& program, const predict::Question& question,
                                            Progress& progress, std::ostream& err);

// From takes that were recorded earlier. `question.at` may name some of the knobs; the others are as the file says.
std::variant<Made, Failure> make_prediction(trace::TraceFile takes, const predict::Question& question,
                                            const std::string& name);

}  // namespace ullage::cli
