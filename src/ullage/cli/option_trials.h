// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tries other values of a shipped program's options, for `ullage advise PROGRAM`: which batch, tile or precision makes
// the program fit the memory. TrialRunner runs each trial. Edit this to change which options get how much of the time.

#include "ullage/advise/advice.h"
#include "ullage/base/knob.h"
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

// The trials of one option. `runner` must outlive it.
//
// If the program does not fit as it is, a number is searched from the smallest value up, because a small program runs
// in a fraction of the time. If the smallest value takes more than the present one, or fails, the search begins at the
// present one. If the smallest takes less and does not fit either, no value fits.
class ChoiceTrials final {
 public:
  ChoiceTrials(Choice choice, Bytes memory, TrialRunner& runner);
  // States what the program takes as it is. Until then it counts as one that does not fit.
  void know(const ValueTried& now) { now_ = now; }

  // Is the first trial one of the smallest value?
  bool begins_at_least() const;
  // Tries one value, so that every option has one trial before any has two. Of words it is the first other one, of
  // numbers the one with which the search begins. A trial that goes on beyond `until` is ended; finish() repeats it.
  void begin(std::chrono::steady_clock::time_point until);
  // Was the trial ended?
  bool is_late() const;
  // How long that trial ran, by the clock; nothing if begin() was not called. That depends on the option: a picture of
  // half the side takes a quarter.
  std::optional<Seconds> took() const { return took_; }

  // Tries the others. If the values are words, tries them all and returns all outcomes. If they are numbers, searches
  // the largest that fits (value_search.h; if bytes fall with the value, the smallest) and returns its outcome. If no
  // number fits, returns the outcome with the lowest peak. Returns an empty list if the program's present number is the
  // best. Call it once.
  std::vector<std::pair<advise::Trial, TrialOutcome>> finish();

 private:
  // Returns the outcome of a value. Runs it unless it ran before and was not ended at `until`.
  ValueTried at(std::int64_t value, std::chrono::steady_clock::time_point until);
  ValueTried at(std::int64_t value) { return at(value, runner_->deadline()); }
  std::optional<std::int64_t> first_value() const;
  std::optional<ValueFound> search();

  Choice choice_;
  ValueTried now_;  // the program as it is
  Bytes memory_;
  TrialRunner* runner_;
  std::map<std::int64_t, TrialOutcome> outcomes_;
  std::optional<Seconds> took_;
};

// The trials of all options of a shipped program. `runner` must outlive it. A program names the options first whose
// trials are quick (runtime::RehearsalOffer::choices). So an option's first trial counts as quick if it is of a
// smallest number, and the first trials of all options before it are so too. Any other trial is expected to take as
// long as the program as it is.
class OptionTrials final {
 public:
  OptionTrials(Bytes memory, TrialRunner& runner) : memory_(memory), runner_(&runner) {}

  // Makes the quick trials. Called in the middle of the prediction of the program as it is, whose longer part is still
  // to come. `so_far` is how long that prediction has taken; each trial may take as long. If a trial is ended for that,
  // no further one is made.
  void begin(const std::vector<Choice>& choices, std::chrono::steady_clock::duration so_far);
  // How long begin() took.
  std::chrono::steady_clock::duration took() const { return took_; }

  // Tries the rest and returns the outcomes. `now` is the program as it is, whose prediction took `plain_took`. First
  // each option gets one trial, which may take half of the time that is left. An option whose trial is expected to take
  // more gets none yet, and comes last. Then the options are finished, those first whose one trial took least. Call
  // this once.
  std::vector<std::pair<advise::Trial, TrialOutcome>> finish(const std::vector<Choice>& choices, const ValueTried& now,
                                                             std::chrono::steady_clock::duration plain_took);

 private:
  void make(const std::vector<Choice>& choices);

  Bytes memory_;
  TrialRunner* runner_;
  std::vector<ChoiceTrials> options_;
  std::chrono::steady_clock::duration took_{};
};

}  // namespace ullage::cli
