// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/choice_search.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <sstream>
#include <vector>

namespace ullage::cli {
namespace {

using predict::LargestThatFits;
using predict::Prediction;

// Predicts the program with the choice at `value`. Returns nothing if the rehearsal failed or the program has no
// such option. Sets `stopped` if a signal ended it; does nothing once that is set.
std::optional<Prediction> at_choice(const RecordedProgram& program, const Choice& choice, std::int64_t value,
                                    predict::Question question, Progress& progress, std::optional<Failure>& stopped) {
  if (stopped) return std::nullopt;
  const std::unique_ptr<RecordedProgram> other = program.with(choice.name, choice.word(value));
  if (other == nullptr) return std::nullopt;
  question.memory.reset();
  question.cuda.reset();
  std::ostringstream unheard;  // its notes are about a value that the person did not ask for
  std::variant<Made, Failure> made = make_prediction(*other, question, progress, unheard);
  auto* found = std::get_if<Made>(&made);
  if (found == nullptr) {
    auto& failure = std::get<Failure>(made);
    if (failure.lines.empty()) stopped = std::move(failure);  // a failure without lines means a signal
    return std::nullopt;
  }
  return std::move(found->prediction);
}

LargestThatFits row_of(const Choice& choice, std::int64_t value, const Prediction& prediction) {
  return {choice.name,    value, prediction.process_peak,
          prediction.law, false, choice.words.empty() ? std::string() : choice.word(value)};
}

LargestThatFits largest(const RecordedProgram& program, const Choice& choice, const predict::Question& question,
                        const Prediction& asked, Progress& progress, std::optional<Failure>& stopped) {
  const Bytes memory = *question.memory;
  const auto fits = [&](const std::optional<Prediction>& one) { return one && one->process_peak <= memory; };
  // A larger number takes more memory. Words are in order of preference, so all are tried.
  const bool ordered = choice.words.empty();
  if (ordered && asked.process_peak <= memory) {
    LargestThatFits best = row_of(choice, choice.value, asked);
    for (auto next = std::ranges::upper_bound(choice.values, choice.value); next != choice.values.end(); ++next) {
      const auto found = at_choice(program, choice, *next, question, progress, stopped);
      if (!fits(found)) break;
      best = row_of(choice, *next, *found);
    }
    return best;
  }
  for (const std::int64_t value : choice.values | std::views::reverse) {
    if (ordered && value >= choice.value) continue;
    const auto found =
        value == choice.value ? std::optional(asked) : at_choice(program, choice, value, question, progress, stopped);
    if (fits(found)) return row_of(choice, value, *found);
  }
  return {choice.name, 0, {}, predict::Law::Exact, false, {}};
}

}  // namespace

std::optional<Failure> add_largest_choices(const RecordedProgram& program, const predict::Question& question,
                                           Progress& progress, Made& made) {
  std::optional<Failure> stopped;
  if (!question.memory) return stopped;
  for (const Choice& choice : made.takes.choices) {
    std::vector<LargestThatFits>& rows = made.prediction.largest;
    const auto row = std::ranges::find(rows, choice.name, &LargestThatFits::knob);
    if (row != rows.end() && row->value > 0) continue;
    if (row != rows.end()) rows.erase(row);
    rows.push_back(largest(program, choice, question, made.prediction, progress, stopped));
  }
  return stopped;
}

}  // namespace ullage::cli
