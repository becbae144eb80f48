// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/rehearsed_runs.h"

#include "ullage/cli/plan_comparison.h"
#include "ullage/cli/prediction_maker.h"
#include "ullage/cli/result_changes.h"
#include "ullage/read/input.h"
#include "ullage/report/advice_curve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

namespace ullage::cli {
namespace {

advise::Effect effect_of(plan::Lever::Results results) {
  if (results == plan::Lever::Results::BitEqual) return advise::Effect::SameBits;
  return results == plan::Lever::Results::Rounding ? advise::Effect::Rounding : advise::Effect::Different;
}

class RehearsedRuns final : public AdviseRuns {
 public:
  RehearsedRuns(TakeRunner runner, std::vector<std::string> words, Bytes memory, Progress& progress)
      : runner_(std::move(runner)), words_(std::move(words)), memory_(memory), progress_(progress) {}

  Tried run(const TryOrder& order) override {
    Tried tried;
    std::vector<std::string> words = words_;
    if (order.trial != nullptr) {
      for (const advise::Option& one : order.trial->options) words = with_option(std::move(words), one.name, one.value);
    }
    RecordedRehearsal program(order.trial == nullptr ? runner_ : runner_.without_spill(), words, order.deadline);
    predict::Question question;
    // Only the program without a remedy is asked for its largest sizes.
    if (order.trial == nullptr) question.memory = memory_;
    if (order.choices_known) {
      program.call_before_other_sizes([&](const std::vector<Choice>& choices) {
        tried.choices = choices;
        order.choices_known(choices);
      });
    }
    std::ostringstream unheard;  // notes say how the figure was found; advise does not print them
    auto made = make_prediction(program, question, progress_, unheard);
    if (auto* failure = std::get_if<Failure>(&made)) {
      Tried ended = tried_of(std::move(*failure));
      ended.choices = std::move(tried.choices);
      return ended;
    }
    auto& done = std::get<Made>(made);
    tried.choices = done.takes.choices;
    see(done.takes.changes);
    if (order.trial != nullptr) {
      tried.effect = effect_of_options(order.trial->options);
      tried.typed = typed(std::move(words), order.trial->options);
    }
    tried.peak = done.prediction.process_peak;
    tried.end = tried.peak <= memory_ ? Tried::End::Fits : Tried::End::RanOut;
    if (order.history || order.curve) {
      done.takes.takes = {done.prediction.take};
      trace::Input history = read::understood(std::move(done.takes));
      if (order.curve) tried.curve = report::curve_of(history, tried.peak);
      if (order.history) tried.history = std::move(history);
    }
    done.prediction.memory = memory_;
    tried.prediction = std::move(done.prediction);
    return tried;
  }

  std::size_t side_by_side(Bytes) const override { return 1; }

 private:
  // Notes what the program says of its options that change results.
  void see(const std::vector<trace::ResultChange>& changes) {
    for (const trace::ResultChange& change : changes) {
      const std::string option = changed_by(change).option.name;
      if (!option.empty()) changes_.insert_or_assign(option, change);
    }
  }

  // An option of which the program has said nothing counts as Different.
  advise::Effect effect_of_options(const std::vector<advise::Option>& options) const {
    advise::Effect worst = advise::Effect::SameBits;
    for (const advise::Option& one : options) {
      const auto found = changes_.find(one.name);
      worst = std::max(worst, found == changes_.end() ? advise::Effect::Different
                                                      : effect_of(results_of(std::span(&found->second, 1))));
    }
    return worst;
  }

  // Adds what a person must write beside an option.
  std::vector<std::string> typed(std::vector<std::string> words, const std::vector<advise::Option>& options) const {
    for (const advise::Option& one : options) {
      const auto found = changes_.find(one.name);
      if (found != changes_.end()) words = with_needed(std::move(words), std::span(&found->second, 1));
    }
    return words;
  }

  TakeRunner runner_;
  std::vector<std::string> words_;
  Bytes memory_;
  Progress& progress_;
  std::map<std::string, trace::ResultChange> changes_;
};

}  // namespace

std::unique_ptr<AdviseRuns> rehearsed_runs(TakeRunner runner, std::vector<std::string> words, Bytes memory,
                                           Progress& progress) {
  return std::make_unique<RehearsedRuns>(std::move(runner), std::move(words), memory, progress);
}

}  // namespace ullage::cli
