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

// Tries words all, and of numbers those that lead to the largest that fits (value_search.h). Returns the outcomes of
// all words. Of numbers it returns the one that was found; if none fits, the one that took least. Returns none if the
// value that the program has is the best. `now` is the program as it is.
std::vector<std::pair<advise::Trial, TrialOutcome>> try_choice(const Choice& choice, const SizeTried& now, Bytes memory,
                                                               TrialRunner& runner);

}  // namespace ullage::cli
