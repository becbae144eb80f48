// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/choice_search.h"

#include "ullage/cli/result_changes.h"
#include "ullage/cli/value_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>
#include <utility>
#include <vector>

namespace ullage::cli {
namespace {

using predict::LargestThatFits;

LargestThatFits row_of(const Choice& choice, std::int64_t value, const Made& made) {
  LargestThatFits row{choice.name, value, made.prediction.process_peak, made.prediction.law};
  if (!choice.words.empty()) row.word = choice.word(value);
  row.needs = needed_beside(made.takes.changes, choice.name);
  return row;
}

// Rehearses values of a choice on demand and keeps their predictions.
class TriedChoice final {
 public:
  TriedChoice(RecordedProgram& program, const Choice& choice, const predict::Question& question, Progress& progress,
              std::optional<Failure>& stopped)
      : program_(program), choice_(choice), question_(question), progress_(progress), stopped_(stopped) {}

  void know(const LargestThatFits& row) { rows_.insert_or_assign(row.value, row); }

  ValueTried at(std::int64_t value) {
    const auto known = rows_.find(value);
    if (known != rows_.end()) return tried(known->second);
    const auto found = predict_at(program_, choice_, value, question_, progress_, stopped_);
    if (!found) return {};
    return tried(rows_.insert_or_assign(value, row_of(choice_, value, *found)).first->second);
  }
  const LargestThatFits& row(std::int64_t value) const { return rows_.at(value); }

 private:
  ValueTried tried(const LargestThatFits& row) const {
    return {row.process_peak <= *question_.memory, row.process_peak};
  }

  RecordedProgram& program_;
  const Choice& choice_;
  const predict::Question& question_;
  Progress& progress_;
  std::optional<Failure>& stopped_;
  std::map<std::int64_t, LargestThatFits> rows_;
};

// Returns the most preferred word that fits: tries the words from the last one on.
LargestThatFits first_word(const Choice& choice, TriedChoice& tried) {
  for (const std::int64_t value : choice.values | std::views::reverse) {
    if (tried.at(value).fits) return tried.row(value);
  }
  return {choice.name, 0, {}, predict::Law::Exact, false, {}};
}

LargestThatFits largest_number(const Choice& choice, std::int64_t start, Bytes memory, TriedChoice& tried) {
  const auto [values, first] = values_from(choice, start);
  const auto found =
      search_values(values, first, tried.at(start), memory, [&](std::int64_t value) { return tried.at(value); });
  if (!found) return {choice.name, 0, {}, predict::Law::Exact, false, {}};
  LargestThatFits row = tried.row(values[found->index]);
  row.smallest = found->falls;
  return row;
}

}  // namespace

std::optional<Made> predict_at(RecordedProgram& program, const Choice& choice, std::int64_t value,
                               predict::Question question, Progress& progress, std::optional<Failure>& stopped) {
  if (stopped) return std::nullopt;
  const std::unique_ptr<RecordedProgram> other = program.with(choice.name, choice.word(value));
  if (other == nullptr) return std::nullopt;
  question.memory.reset();
  question.cuda.reset();
  std::ostringstream unheard;  // notes about this value are not printed: the person did not ask for it
  std::variant<Made, Failure> made = make_prediction(*other, question, progress, unheard);
  auto* found = std::get_if<Made>(&made);
  if (found == nullptr) {
    auto& failure = std::get<Failure>(made);
    if (failure.lines.empty()) stopped = std::move(failure);  // a failure without lines means a signal
    return std::nullopt;
  }
  return std::move(*found);
}

std::optional<Failure> add_largest_choices(RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made) {
  std::optional<Failure> stopped;
  if (!question.memory) return stopped;
  for (const Choice& choice : made.takes.choices) {
    std::vector<LargestThatFits>& rows = made.prediction.largest;
    const auto by_law = std::ranges::find(rows, choice.name, &LargestThatFits::knob);
    const bool law_fits = by_law != rows.end() && by_law->value > 0;
    // The law was asked at values in the steps of the takes only (largest.h). So the search goes on from the law's
    // answer. If that is not among the option's values, the law's row stays as it is.
    if (law_fits && !std::ranges::binary_search(choice.values, by_law->value)) continue;
    TriedChoice tried(program, choice, question, progress, stopped);
    tried.know(row_of(choice, choice.value, made));
    if (law_fits) tried.know(*by_law);
    const std::int64_t start = law_fits ? by_law->value : choice.value;
    if (by_law != rows.end()) rows.erase(by_law);
    rows.push_back(choice.words.empty() ? largest_number(choice, start, *question.memory, tried)
                                        : first_word(choice, tried));
  }
  return stopped;
}

}  // namespace ullage::cli
