// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/prediction_maker.h"

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::cli {
namespace {

using predict::NeedsTakes;
using predict::Prediction;
using predict::Question;

constexpr std::uint64_t kLoose = 100;  // a bound is loose if its slack is more than the peak divided by this
constexpr std::uint64_t kUneven = 10;  // so is one of which more than the pool's peak divided by this has no law
constexpr int kOtherSizes = 2;         // how often other sizes are tried before the target itself is run

Failure wrong(const Error& error) { return {to_int(ExitCode::WrongUse), {error.text()}}; }

// Returns whether the file holds one take, of a run at the target, so that no law is needed.
bool is_of_target(const trace::TraceFile& file, const std::vector<Knob>& at) {
  return file.takes.size() == 1 && file.takes.front().knobs == at;
}

// Returns whether the prediction is a bound too far above what the takes show. Then a run at the target says more.
bool is_loose(const Prediction& prediction) {
  return prediction.law == predict::Law::Bound &&
         (prediction.slack * kLoose > prediction.process_peak || prediction.lawless * kUneven > prediction.pool_peak);
}

// Returns a prediction from what the takes have in common; nothing if that is too little, or the bound is loose.
std::optional<Prediction> from_common_part(const trace::TraceFile& file, Question question) {
  question.from_common_part = true;
  Result<std::variant<Prediction, NeedsTakes>> answer = predict::predict(file, question);
  auto* prediction = answer ? std::get_if<Prediction>(&*answer) : nullptr;
  return prediction == nullptr || is_loose(*prediction) ? std::nullopt : std::optional(std::move(*prediction));
}

Made made_of_take(trace::TraceFile file, const Question& question, const std::string& why) {
  Prediction prediction = predict::of_take(file, file.takes.front(), question);
  prediction.at = question.at;
  if (!why.empty()) prediction.why = why;
  return {std::move(prediction), std::move(file)};
}

std::variant<Made, Failure> measured(RecordedProgram& program, const Question& question, const std::string& why) {
  Recorded recorded = program.at_target(question.at);
  if (auto* failure = std::get_if<Failure>(&recorded)) return std::move(*failure);
  return made_of_take(std::move(std::get<trace::TraceFile>(recorded)), question,
                      "run at that size, because small sizes are not enough: " + why);
}

void say(Progress& progress, std::ostream& err, const std::string& text) {
  progress.pause();
  err << "ullage: " << text << '\n' << std::flush;
}

const Knob* find(const std::vector<Knob>& knobs, const std::string& name) {
  const auto found = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& one) { return one.name == name; });
  return found == knobs.end() ? nullptr : &*found;
}

std::string names_of(const std::vector<Knob>& knobs) {
  std::string text;
  for (const Knob& knob : knobs) text += (text.empty() ? "" : ", ") + knob.name;
  return text.empty() ? "none" : text;
}

// Copies the largest values that fit from the bound to the measured prediction. If the measured run fits the memory,
// each of them is at least the value that was run.
void keep_largest(const Prediction& bound, Prediction& prediction) {
  prediction.largest = bound.largest;
  prediction.largest_square = bound.largest_square;
  if (!prediction.memory || !prediction.fits()) return;
  const auto raise = [&](predict::LargestThatFits& one) {
    const std::int64_t asked = find(prediction.at, one.knob)->value;
    if (one.value < asked) one = {one.knob, asked, prediction.process_peak, predict::Law::None, one.more_may_fit};
  };
  for (predict::LargestThatFits& one : prediction.largest) raise(one);
  if (!prediction.largest_square) return;
  const std::vector<std::string>& sides = prediction.largest_square->sides;
  const auto alike = [&](const std::string& side) {
    return find(prediction.at, side)->value == find(prediction.at, sides.front())->value;
  };
  if (std::all_of(sides.begin(), sides.end(), alike)) raise(prediction.largest_square->found);
}

// Returns the target of each knob of a file of takes: what was asked for, else what the file states. BadArgument if a
// knob is unknown or has neither.
Result<std::vector<Knob>> target_of(const trace::TraceFile& file, const std::vector<Knob>& asked) {
  std::vector<Knob> at = file.takes.front().knobs;
  for (const Knob& knob : asked) {
    if (find(at, knob.name) != nullptr) continue;
    return Error{Error::Kind::BadArgument,
                 fmt::format("{} is not a knob of the takes; they have {}", knob.name, names_of(at)), "--at"};
  }
  for (Knob& knob : at) {
    const Knob* stated = find(asked, knob.name);
    const Knob* of_file = stated != nullptr ? stated : find(file.at, knob.name);
    if (of_file == nullptr) {
      return Error{Error::Kind::BadArgument,
                   fmt::format("the size of {} to predict is missing: add --at {}=SIZE", knob.name, knob.name), "--at"};
    }
    knob.value = of_file->value;
  }
  return at;
}

// As make_prediction(), for the memory that the takes' other processes leave. Does not set Prediction::others.
std::variant<Made, Failure> predicted(RecordedProgram& program, const Question& asked, Progress& progress,
                                      std::ostream& err) {
  Recorded recorded = program.first();
  for (int tried = 0;; ++tried) {
    if (auto* failure = std::get_if<Failure>(&recorded)) return std::move(*failure);
    auto& file = std::get<trace::TraceFile>(recorded);
    Question question = asked;
    question.at = file.at;
    if (asked.memory) question.memory = saturating_sub(*asked.memory, program.others());
    if (is_of_target(file, question.at)) return made_of_take(std::move(file), question, "");
    progress.stage("comparing the takes");
    Result<std::variant<Prediction, NeedsTakes>> answer = predict::predict(file, question);
    progress.pause();
    if (!answer) return wrong(answer.error());
    if (auto* prediction = std::get_if<Prediction>(&*answer)) {
      if (!is_loose(*prediction)) return Made{std::move(*prediction), std::move(file)};
      const std::string why =
          fmt::format("{}, which may add {} to the peak", prediction->why, to_string(prediction->slack));
      say(progress, err, fmt::format("{}; running it at {} itself", why, in_words(question.at)));
      std::variant<Made, Failure> made = measured(program, question, why);
      if (auto* found = std::get_if<Made>(&made)) keep_largest(*prediction, found->prediction);
      return made;
    }
    const NeedsTakes& missing = std::get<NeedsTakes>(*answer);
    if (!missing.other || tried == kOtherSizes) {
      if (std::optional<Prediction> bound = from_common_part(file, question)) {
        say(progress, err, missing.why + "; what the sizes tried have in common is used");
        return Made{std::move(*bound), std::move(file)};
      }
      say(progress, err, fmt::format("{}; running it at {} itself", missing.why, in_words(question.at)));
      return measured(program, question, missing.why);
    }
    say(progress, err, fmt::format("{}; trying {}", missing.why, as_text(*missing.other)));
    recorded = program.at_sizes(*missing.other);
  }
}

}  // namespace

std::variant<Made, Failure> make_prediction(RecordedProgram& program, const Question& asked, Progress& progress,
                                            std::ostream& err) {
  std::variant<Made, Failure> made = predicted(program, asked, progress, err);
  if (auto* done = std::get_if<Made>(&made)) {
    done->prediction.memory = asked.memory;
    done->prediction.others = program.others();
  }
  return made;
}

std::variant<Made, Failure> make_prediction(trace::TraceFile file, const Question& asked, const std::string& name) {
  if (file.takes.empty()) return Failure{to_int(ExitCode::BadInput), {name + ": there is no take in it"}};
  Result<std::vector<Knob>> at = target_of(file, asked.at);
  if (!at) return wrong(at.error());
  Question question = asked;
  question.at = std::move(at).value();
  if (is_of_target(file, question.at)) return made_of_take(std::move(file), question, "");
  Result<std::variant<Prediction, NeedsTakes>> answer = predict::predict(file, question);
  if (!answer) return wrong(answer.error());
  if (auto* prediction = std::get_if<Prediction>(&*answer)) return Made{std::move(*prediction), std::move(file)};
  if (std::optional<Prediction> bound = from_common_part(file, question))
    return Made{std::move(*bound), std::move(file)};
  const NeedsTakes& missing = std::get<NeedsTakes>(*answer);
  Failure failure{to_int(ExitCode::Failed), {name + ": " + missing.why}};
  if (missing.other) failure.lines.push_back("sizes that would be enough: " + as_text(*missing.other));
  return failure;
}

}  // namespace ullage::cli
