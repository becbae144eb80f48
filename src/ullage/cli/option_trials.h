// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tries other values of a shipped program's options, for `ullage advise PROGRAM`: which batch, tile or precision makes
// the program fit the memory. TrialRunner runs each trial.

#include "ullage/advise/advice.h"
#include "ullage/base/knob.h"
#include "ullage/cli/size_search.h"
#include "ullage/cli/trial_runner.h"
#include "ullage/cli/value_search.h"
#include "ullage/predict/prediction.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace ullage::cli {

// Returns the largest sizes that fit, a row for each knob, by the laws of the plain program's recordings (law.h). A
// knob that is one of `choices` too is left out, because its values are tried.
std::vector<advise::Row> sizes_by_law(const predict::Prediction& prediction, const std::vector<Choice>& choices);

// The trials of one option. `choice` and `runner` must outlive it. `now` is the program as it is.
class ChoiceTrials final {
 public:
  ChoiceTrials(const Choice& choice, const SizeTried& now, Bytes memory, TrialRunner& runner);

  // Tries one value, so that every option has one trial before any has two: of words the first other one, of numbers
  // the one with which the search begins. A trial that goes on beyond `until` is ended; finish() repeats it.
  void begin(std::chrono::steady_clock::time_point until);
  // How long that trial ran, by the clock. That depends on the option: a picture of half the side takes a quarter.
  Seconds took() const { return took_; }

  // Tries the others. If the values are words, tries them all and returns all outcomes. If they are numbers, searches
  // the largest that fits (value_search.h; if bytes fall with the value, the smallest) and returns its outcome. If no
  // number fits, returns the outcome with the lowest peak. Returns an empty list if the program's present number is the
  // best. Call it once.
  std::vector<std::pair<advise::Trial, TrialOutcome>> finish();

 private:
  // Returns the outcome of a value. Runs it unless it ran before and was not ended at `until`.
  ValueTried at(std::int64_t value, std::chrono::steady_clock::time_point until);
  ValueTried at(std::int64_t value) { return at(value, runner_->deadline()); }
  std::optional<ValueFound> search(const std::function<ValueTried(std::int64_t)>& run) const;

  const Choice* choice_;
  SizeTried now_;
  Bytes memory_;
  TrialRunner* runner_;
  std::map<std::int64_t, TrialOutcome> outcomes_;
  Seconds took_;
};

}  // namespace ullage::cli
