// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/option_trials.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace ullage::cli {
namespace {

using advise::Row;

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

ChoiceTrials::ChoiceTrials(const Choice& choice, const SizeTried& now, Bytes memory, TrialRunner& runner)
    : choice_(&choice), now_(now), memory_(memory), runner_(&runner) {}

ValueTried ChoiceTrials::at(std::int64_t value, std::chrono::steady_clock::time_point until) {
  auto found = outcomes_.find(value);
  if (found == outcomes_.end() || found->second.late) {
    TrialOutcome outcome = runner_->outcome_of(advise::option_trial(*choice_, value), until);
    found = outcomes_.insert_or_assign(value, std::move(outcome)).first;
  }
  return ValueTried{found->second.row.fits.value_or(false), found->second.row.peak};
}

std::optional<ValueFound> ChoiceTrials::search(const std::function<ValueTried(std::int64_t)>& run) const {
  const auto [values, first] = values_from(*choice_, choice_->value);
  return search_values(values, first, {now_.fits, now_.took}, memory_, run);
}

void ChoiceTrials::begin(std::chrono::steady_clock::time_point until) {
  const auto began = std::chrono::steady_clock::now();
  if (!choice_->words.empty()) {
    const auto other = std::ranges::find_if(choice_->values, [&](std::int64_t one) { return one != choice_->value; });
    if (other != choice_->values.end()) at(*other, until);
  } else {
    // What the search says after its first run is of no interest yet.
    search([&, ran = false](std::int64_t value) mutable {
      return std::exchange(ran, true) ? ValueTried{} : at(value, until);
    });
  }
  took_ = Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

std::vector<std::pair<advise::Trial, TrialOutcome>> ChoiceTrials::finish() {
  std::vector<std::pair<advise::Trial, TrialOutcome>> kept;
  const auto keep = [&](std::int64_t value) {
    kept.emplace_back(advise::option_trial(*choice_, value), std::move(outcomes_.at(value)));
  };
  if (!choice_->words.empty()) {
    for (const std::int64_t value : choice_->values) {
      if (value != choice_->value) at(value), keep(value);
    }
    return kept;
  }
  const std::vector<std::int64_t> values = values_from(*choice_, choice_->value).values;
  const auto found = search([&](std::int64_t value) { return at(value); });
  if (found && values[found->index] == choice_->value) return kept;
  if (found) {
    Row& row = outcomes_.at(values[found->index]).row;
    const bool late =
        std::ranges::any_of(outcomes_, [](const auto& one) { return one.second.row.basis == advise::Basis::NotTried; });
    row.name += late           ? ": fits; others were not tried"
                : found->falls ? ": the smallest that fits"
                               : ": the largest that fits";
    keep(values[found->index]);
  } else if (!outcomes_.empty()) {
    keep(least_of(outcomes_));
  }
  return kept;
}

}  // namespace ullage::cli
