// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/way_search.h"

#include "ullage/cli/choice_search.h"
#include "ullage/cli/planned_fit.h"
#include "ullage/cli/result_changes.h"
#include "ullage/cli/value_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace ullage::cli {
namespace {

using report::ComparedWay;
using Outcome = plan::Plan::Outcome;

class WaySearch final {
 public:
  WaySearch(RecordedProgram& program, const std::vector<std::string>& words, const AllowedClasses& allowed,
            Bytes memory, Progress& progress, std::ostream& err)
      : program_(program), words_(words), allowed_(allowed), memory_(memory), progress_(progress), err_(err) {}

  std::variant<WaysFound, Failure> find() {
    std::ostringstream unheard;  // the person asked for a run; how the figures were found is of no interest
    std::variant<Made, Failure> made = make_prediction(program_, {}, progress_, unheard);
    if (auto* failure = std::get_if<Failure>(&made)) return std::move(*failure);
    Made& plain = std::get<Made>(made);
    const std::vector<Choice> choices = plain.takes.choices;
    const Bytes peak = plain.prediction.process_peak;
    add(std::move(plain), words_);
    const ComparedWay as_it_is = ways_.front();
    const bool is_cheap =
        as_it_is.outcome == Outcome::Planned && as_it_is.overhead.count <= plan::kLittleTime * as_it_is.step.count;
    if (as_it_is.outcome != Outcome::Fits && !is_cheap) {
      for (const Choice& choice : choices) add_ways_of(choice, peak);
    }
    progress_.pause();
    if (stopped_) return std::move(*stopped_);
    const std::size_t chosen = choose(ways_, allowed_);
    return WaysFound{ways_, words_of_[ways_[chosen].chosen ? chosen : 0]};
  }

 private:
  void add_ways_of(const Choice& choice, Bytes peak) {
    const plan::Lever::Results results = results_of(std::vector<trace::ResultChange>{{choice.name, choice.results}});
    if (choice.results.empty() || !allowed_.allows(results)) return;
    std::map<std::int64_t, Made> tried;
    const auto take_of = [&](std::int64_t value) -> ValueTried {
      auto made = tried.find(value);
      if (made == tried.end()) {
        std::optional<Made> its = predict_at(program_, choice, value, {}, progress_, stopped_);
        if (!its) return {};
        made = tried.emplace(value, std::move(*its)).first;
      }
      const Bytes took = made->second.prediction.process_peak;
      return {took <= memory_, took};
    };
    std::vector<std::int64_t> smaller;
    std::ranges::copy_if(choice.values, std::back_inserter(smaller), [&](auto one) { return one < choice.value; });
    if (choice.words.empty()) {
      std::optional<std::int64_t> best = best_number(smaller, {false, peak}, choice.value, take_of);
      if (!best && !tried.empty()) best = least_of(tried);
      smaller.clear();
      if (best) smaller.push_back(*best);
    }
    for (const std::int64_t value : smaller) {
      take_of(value);
      const auto made = tried.find(value);
      if (stopped_ || made == tried.end()) continue;
      std::vector<std::string> words = with_option(words_, choice.name, choice.word(value));
      words = with_needed(std::move(words), made->second.takes.changes);
      add(std::move(made->second), std::move(words));
      ways_.back().results = results;
    }
  }

  // Returns the largest of `values` that fits; nothing if none does.
  std::optional<std::int64_t> best_number(std::vector<std::int64_t> values, const ValueTried& now, std::int64_t present,
                                          const std::function<ValueTried(std::int64_t)>& take_of) const {
    values.push_back(present);
    const auto found = search_values(values, values.size() - 1, now, memory_,
                                     [&](std::int64_t value) { return value == present ? now : take_of(value); });
    return found ? std::optional(values[found->index]) : std::nullopt;
  }

  static std::int64_t least_of(const std::map<std::int64_t, Made>& tried) {
    return std::ranges::min_element(tried, {}, [](const auto& one) { return one.second.prediction.process_peak; })
        ->first;
  }

  // Plans it if it does not fit.
  void add(Made made, std::vector<std::string> words) {
    predict::Prediction& prediction = made.prediction;
    prediction.memory = memory_;
    ComparedWay way;
    if (const auto planned = add_planned_fit(prediction, progress_, err_)) {
      way = way_of(*planned, {});
    } else {
      way.plain_peak = way.peak = prediction.pool_peak, way.least = prediction.process_peak;
      way.step = prediction.step;
      way.outcome = prediction.fits() ? Outcome::Fits : Outcome::Infeasible;
    }
    way.file.clear();
    // All options that change results, also those that the person gave.
    for (const trace::ResultChange& change : made.takes.changes) way.changes.push_back(change.what);
    ways_.push_back(std::move(way));
    words_of_.push_back(std::move(words));
  }

  RecordedProgram& program_;
  const std::vector<std::string>& words_;
  const AllowedClasses& allowed_;
  const Bytes memory_;
  Progress& progress_;
  std::ostream& err_;
  std::vector<ComparedWay> ways_;
  std::vector<std::vector<std::string>> words_of_;  // of each of ways_
  std::optional<Failure> stopped_;
};

}  // namespace

std::variant<WaysFound, Failure> search_ways(RecordedProgram& program, const std::vector<std::string>& words,
                                             const AllowedClasses& allowed, Bytes memory, Progress& progress,
                                             std::ostream& err) {
  return WaySearch(program, words, allowed, memory, progress, err).find();
}

}  // namespace ullage::cli
