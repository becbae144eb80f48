// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/option_trials.h"

#include "ullage/cli/value_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
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

using TrialOutcomes = std::map<std::int64_t, TrialOutcome>;

std::int64_t least_of(const TrialOutcomes& outcomes) {
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

std::vector<std::pair<advise::Trial, TrialOutcome>> try_choice(const Choice& choice, const SizeTried& now, Bytes memory,
                                                               TrialRunner& runner) {
  TrialOutcomes outcomes;
  const auto run = [&](std::int64_t value) {
    const TrialOutcome& one =
        outcomes.emplace(value, runner.outcome_of(advise::option_trial(choice, value))).first->second;
    return ValueTried{one.row.fits.value_or(false), one.row.peak};
  };
  std::vector<std::pair<advise::Trial, TrialOutcome>> kept;
  const auto keep = [&](std::int64_t value) {
    kept.emplace_back(advise::option_trial(choice, value), std::move(outcomes.at(value)));
  };
  if (!choice.words.empty()) {
    for (const std::int64_t value : choice.values) {
      if (value != choice.value) run(value), keep(value);
    }
    return kept;
  }
  const auto [values, first] = values_from(choice, choice.value);
  const auto found = search_values(values, first, {now.fits, now.took}, memory, run);
  if (found && values[found->index] == choice.value) return kept;
  if (found) {
    Row& row = outcomes.at(values[found->index]).row;
    row.name += found->falls ? ": the smallest that fits" : ": the largest that fits";
    keep(values[found->index]);
  } else if (!outcomes.empty()) {
    keep(least_of(outcomes));
  }
  return kept;
}

}  // namespace ullage::cli
