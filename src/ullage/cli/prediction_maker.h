// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a prediction from a program. Takes at small sizes come first. If they do not allow a prediction, other sizes
// are tried, twice at most. If these do not allow one either, a bound from what the takes have in common is the answer.
// If more than a tenth of its peak follows no law, the program is run at the target size itself. It is also run there
// if the prediction is a bound whose slack is more than 1 % of the peak. Edit prediction_maker.cpp to change
// in which cases other takes are recorded.

#include "ullage/cli/recorded_program.h"
#include "ullage/predict/predict.h"

#include <iosfwd>
#include <variant>

namespace ullage::cli {

struct Made {
  predict::Prediction prediction;
  trace::TraceFile takes;  // the takes that it was made from
};

// Records takes of `program` and predicts from them. Ignores `question.at`, because the file of the takes names the
// target. Writes to `err` what is tried and why.
std::variant<Made, Failure> make_prediction(RecordedProgram& program, const predict::Question& question,
                                            Progress& progress, std::ostream& err);

// Predicts from takes that were recorded earlier, and runs nothing. `question.at` may set some of the knobs; the others
// keep the target that the file states. Fails if the takes do not suffice. `name` is the file's, for messages.
std::variant<Made, Failure> make_prediction(trace::TraceFile takes, const predict::Question& question,
                                            const std::string& name);

}  // namespace ullage::cli
