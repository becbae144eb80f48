// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/option_trials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>

namespace ullage::cli {
namespace {

using advise::Row;
using Clock = std::chrono::steady_clock;

Row row_of(const std::string& name, const predict::LargestThatFits& one, std::int64_t now) {
  Row row;
  row.id = advise::kSmallerSize;
  row.name = fmt::format("{} {}: the {} that fits", name, one.value, one.smallest ? "smallest" : "largest");
  row.effect = advise::Effect::Different;
  row.fits = true, row.peak = one.process_peak;
  row.action = fmt::format("{} {} in place of {}", name, one.value, now);
  if (one.law == predict::Law::Bound) row.note = "its peak is at most this";
  if (one.more_may_fit) row.note = "larger ones may fit too";
  return row;
}

std::int64_t value_of(const std::vector<Knob>& knobs, const std::string& name) {
  const auto found = std::ranges::find(knobs, name, &Knob::name);
  return found == knobs.end() ? 0 : found->value;
}

std::int64_t least_of(const std::map<std::int64_t, TrialOutcome>& outcomes) {
  const auto peak = [](const auto& one) { return one.second.row.peak.value_or(Bytes{~std::uint64_t{0}}); };
  return std::ranges::min_element(outcomes, {}, peak)->first;
}

}  // namespace

std::vector<Row> sizes_by_law(const predict::Prediction& prediction, const std::vector<Choice>& choices) {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const predict::LargestThatFits& one) {
    const std::int64_t now = value_of(prediction.at, one.knob);
    if (one.value > 0 && one.value != now) rows.push_back(row_of(name, one, now));
  };
  const auto& square = prediction.largest_square;
  if (square) add(fmt::format("{}", fmt::join(square->sides, " and ")), square->found);
  for (const predict::LargestThatFits& one : prediction.largest) {
    const bool is_side = square && std::ranges::find(square->sides, one.knob) != square->sides.end();
    const bool is_tried = std::ranges::find(choices, one.knob, &Choice::name) != choices.end();
    if (!is_side && !is_tried) add(one.knob, one);
  }
  return rows;
}

ChoiceTrials::ChoiceTrials(Choice choice, Bytes memory, TrialRunner& runner)
    : choice_(std::move(choice)), memory_(memory), runner_(&runner) {}

bool ChoiceTrials::is_late() const {
  return std::ranges::any_of(outcomes_, [](const auto& one) { return one.second.late; });
}

ValueTried ChoiceTrials::at(std::int64_t value, std::chrono::steady_clock::time_point until) {
  auto found = outcomes_.find(value);
  if (found == outcomes_.end() || found->second.late) {
    TrialOutcome outcome = runner_->outcome_of(advise::option_trial(choice_, value), until);
    found = outcomes_.insert_or_assign(value, std::move(outcome)).first;
  }
  return ValueTried{found->second.row.fits.value_or(false), found->second.row.peak};
}

bool ChoiceTrials::begins_at_least() const {
  return choice_.words.empty() && !now_.fits && choice_.values.front() < choice_.value;
}

std::optional<ValueFound> ChoiceTrials::search() {
  const auto [values, first] = values_from(choice_, choice_.value);
  const auto run = [&](std::int64_t value) { return value == choice_.value ? now_ : at(value); };
  if (begins_at_least()) {
    const ValueTried least = at(values.front());
    if (least.fits) return search_values(values, 0, least, memory_, run);
    if (least.took && now_.took && *least.took < *now_.took) return std::nullopt;  // the others take more
  }
  return search_values(values, first, now_, memory_, run);
}

std::optional<std::int64_t> ChoiceTrials::first_value() const {
  const std::int64_t now = choice_.value;
  if (begins_at_least()) return choice_.values.front();
  if (!choice_.words.empty()) {
    const auto other = std::ranges::find_if(choice_.values, [&](std::int64_t one) { return one != now; });
    return other == choice_.values.end() ? std::nullopt : std::optional(*other);
  }
  const auto [values, first] = values_from(choice_, now);
  std::optional<std::int64_t> next;
  // Asks the search which value it would run first. Nothing is run, so the result of the search is of no interest.
  search_values(values, first, now_, memory_, [&](std::int64_t value) {
    next = next.value_or(value);
    return ValueTried{};
  });
  return next;
}

void ChoiceTrials::begin(std::chrono::steady_clock::time_point until) {
  const auto began = Clock::now();
  if (const auto value = first_value()) at(*value, until);
  took_ = Seconds{std::chrono::duration<double>(Clock::now() - began).count()};
}

std::vector<std::pair<advise::Trial, TrialOutcome>> ChoiceTrials::finish() {
  std::vector<std::pair<advise::Trial, TrialOutcome>> kept;
  const auto keep = [&](std::int64_t value) {
    kept.emplace_back(advise::option_trial(choice_, value), std::move(outcomes_.at(value)));
  };
  if (!choice_.words.empty()) {
    for (const std::int64_t value : choice_.values) {
      if (value != choice_.value) at(value), keep(value);
    }
    return kept;
  }
  const std::vector<std::int64_t> values = values_from(choice_, choice_.value).values;
  const auto found = search();
  if (found && values[found->index] == choice_.value) return kept;
  if (found) {
    Row& row = outcomes_.at(values[found->index]).row;
    // If it is not known what the program takes as it is, its present value may fit too, or one between.
    const bool late = !now_.took || std::ranges::any_of(outcomes_, [](const auto& one) {
      return one.second.row.basis == advise::Basis::NotTried;
    });
    row.name += late           ? ": fits; others were not tried"
                : found->falls ? ": the smallest that fits"
                               : ": the largest that fits";
    keep(values[found->index]);
  } else if (!outcomes_.empty()) {
    keep(least_of(outcomes_));
  }
  return kept;
}

void OptionTrials::make(const std::vector<Choice>& choices) {
  for (const Choice& choice : choices) options_.emplace_back(choice, memory_, *runner_);
}

void OptionTrials::begin(const std::vector<Choice>& choices, Clock::duration so_far) {
  const Clock::time_point began = Clock::now();
  make(choices);
  for (ChoiceTrials& option : options_) {
    if (!option.begins_at_least()) break;
    option.begin(Clock::now() + so_far);
    if (option.is_late()) break;
  }
  took_ = Clock::now() - began;
}

std::vector<std::pair<advise::Trial, TrialOutcome>> OptionTrials::finish(const std::vector<Choice>& choices,
                                                                         const ValueTried& now,
                                                                         Clock::duration plain_took) {
  if (options_.empty()) make(choices);
  bool quick = true;
  for (ChoiceTrials& option : options_) {
    option.know(now);
    quick = quick && option.begins_at_least();
    const Clock::time_point half = runner_->halfway();
    if (!option.took() && (quick || Clock::now() + plain_took <= half)) option.begin(half);
  }
  std::ranges::stable_sort(options_, {}, [](const ChoiceTrials& option) {
    return option.took().value_or(Seconds{std::numeric_limits<double>::infinity()});
  });
  std::vector<std::pair<advise::Trial, TrialOutcome>> outcomes;
  for (ChoiceTrials& option : options_) std::ranges::move(option.finish(), std::back_inserter(outcomes));
  return outcomes;
}

}  // namespace ullage::cli
