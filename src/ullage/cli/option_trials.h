// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tries other values of a shipped program's options.

#include "ullage/advise/advice.h"
#include "ullage/base/knob.h"
#include "ullage/cli/size_search.h"
#include "ullage/cli/trial_runner.h"
#include "ullage/predict/prediction.h"

#include <utility>
#include <vector>

namespace ullage::cli {

// The largest sizes that fit, as the law of the plain program's takes says, a row each. A size that is one of `choices`
// too is left out, because it is tried.
std::vector<advise::Row> sizes_by_law(const predict::Prediction& prediction, const std::vector<Choice>& choices);

// If the values are words, tries them all and returns all outcomes. If they are numbers, searches the largest that fits
// (value_search.h) and returns its outcome. If no number fits, returns the outcome that took least. Returns none if the
// program's present value is the best. `now` is the program as it is.
std::vector<std::pair<advise::Trial, TrialOutcome>> try_choice(const Choice& choice, const SizeTried& now, Bytes memory,
                                                               TrialRunner& runner);

}  // namespace ullage::cli
