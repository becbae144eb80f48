// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/recorded_program.h"

#include "ullage/base/exit_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>
#include <set>
#include <utility>

namespace ullage::cli {
namespace {

// The first step creates the optimizer's state, the second is like all later ones, and the third confirms that.
constexpr std::uint64_t kSteps = 3;

// Less growth of other processes from one size to the next may be chance.
constexpr Bytes kRise = 1_MiB;

predict::Grid grid_at(const std::vector<Knob>& knobs) {
  predict::Grid grid;
  for (const Knob& knob : knobs) grid.axes.push_back({knob.name, {knob.value}});
  return grid;
}

// Returns --vary options with larger sizes than `point`, where the program failed.
std::string larger(const std::vector<Knob>& point) {
  std::string text;
  for (const Knob& knob : point) {
    const std::int64_t from = 4 * knob.value;
    text += fmt::format(" --vary {}={},{},{}", knob.name, from, from + from / 2, 2 * from);
  }
  return text;
}

}  // namespace

RecordedCommand::RecordedCommand(TakeRunner runner, std::vector<std::string> words, Knobs knobs, Progress& progress,
                                 std::ostream& err)
    : runner_(std::move(runner)), words_(std::move(words)), knobs_(std::move(knobs)), progress_(progress), err_(err) {}

Recorded RecordedCommand::first() {
  if (knobs_.below) return takes_at({knobs_.at});
  return takes_at(points(knobs_.grid));
}

Recorded RecordedCommand::at_sizes(const predict::Grid& grid) { return takes_at(points(grid)); }

Recorded RecordedCommand::at_target(const std::vector<Knob>& target) { return takes_at({target}); }

const trace::Take* RecordedCommand::known(const std::vector<Knob>& point) const {
  const auto take =
      std::find_if(all_.takes.begin(), all_.takes.end(), [&](const trace::Take& one) { return one.knobs == point; });
  return take == all_.takes.end() ? nullptr : &*take;
}

// Writes a note if the program ended by itself before kSteps whole steps. Writes it once, because every size would
// repeat it.
void RecordedCommand::note_end(const std::vector<Knob>& point, const TakeDone& done) {
  if (done.stopped || done.steps >= kSteps || std::exchange(noted_, true)) return;
  progress_.pause();
  err_ << fmt::format(
      "ullage: note: {}: the program ended by itself {}: the peak is that of the whole run, and a longer "
      "one may need more\n",
      in_words(point),
      done.steps == 0 ? std::string("before a whole step was repeated")
                      : fmt::format("after {} whole step{}", done.steps, done.steps == 1 ? "" : "s"));
}

std::optional<Failure> RecordedCommand::add_take(const std::vector<Knob>& point) {
  std::variant<TakeDone, Failure> ended = runner_.run({in_words(point), fill(words_, point), kSteps, ""});
  if (auto* failure = std::get_if<Failure>(&ended)) {
    // A failure at the target itself is not about small sizes.
    if (failure->by_program && point != knobs_.at) {
      failure->lines.push_back(
          "if this size is too small for the program (BatchNorm needs more than one value a channel), try "
          "larger ones:" +
          larger(point));
    }
    return std::move(*failure);
  }
  TakeDone& done = std::get<TakeDone>(ended);
  if (done.file.takes.empty()) {
    return Failure{to_int(ExitCode::Failed), {in_words(point) + ": there is no take in the trace"}};
  }
  note_end(point, done);
  others_.push_back(done.others);
  if (all_.takes.empty()) {
    all_ = done.file;
    all_.takes.clear();
    all_.command = words_;
    all_.at = knobs_.at;
  }
  all_.takes.push_back(std::move(done.file.takes.front()));
  all_.takes.back().knobs = point;
  return std::nullopt;
}

Bytes RecordedCommand::others() const {
  std::map<std::int64_t, Bytes> by_value;
  Bytes most{};
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (all_.takes[i].knobs == knobs_.at) return others_[i];
    most = std::max(most, others_[i]);
    by_value[all_.takes[i].knobs.front().value] = others_[i];
  }
  if (by_value.size() < 2 || knobs_.at.size() > 1) return most;
  double steepest = 0;  // bytes for each unit of the knob
  for (auto next = std::next(by_value.begin()), one = by_value.begin(); next != by_value.end(); one = next++) {
    if (next->second <= one->second + kRise) return most;
    steepest = std::max(steepest, double((next->second - one->second).count) / double(next->first - one->first));
  }
  const std::int64_t further = std::max<std::int64_t>(knobs_.at.front().value - by_value.rbegin()->first, 0);
  return most + Bytes{static_cast<std::uint64_t>(std::ceil(steepest * double(further)))};
}

Recorded RecordedCommand::takes_at(const std::vector<std::vector<Knob>>& points) {
  for (const std::vector<Knob>& point : points) {
    if (known(point) != nullptr) continue;
    if (std::optional<Failure> failure = add_take(point)) return std::move(*failure);
  }
  trace::TraceFile file = all_;
  file.takes.clear();
  for (const std::vector<Knob>& point : points) file.takes.push_back(*known(point));
  return file;
}

std::vector<std::string> with_option(std::vector<std::string> words, const std::string& option,
                                     const std::string& value) {
  const std::string name = "--" + option;
  bool there = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) {
      words[++i] = value;
      there = true;
    } else if (words[i].starts_with(name + "=")) {
      words[i] = fmt::format("{}={}", name, value);
      there = true;
    }
  }
  if (!there) words.insert(words.end(), {name, value});
  return words;
}

RecordedRehearsal::RecordedRehearsal(TakeRunner runner, std::vector<std::string> words,
                                     std::optional<std::chrono::steady_clock::time_point> deadline)
    : runner_(std::move(runner)), words_(std::move(words)), deadline_(deadline) {}

Recorded RecordedRehearsal::first() {
  Recorded recorded = rehearse("auto");
  if (const auto* file = std::get_if<trace::TraceFile>(&recorded)) choices_ = file->choices;
  return recorded;
}

Recorded RecordedRehearsal::at_sizes(const predict::Grid& grid) { return rehearse_more(grid); }

Recorded RecordedRehearsal::at_target(const std::vector<Knob>& target) { return rehearse_more(grid_at(target)); }

Recorded RecordedRehearsal::rehearse_more(const predict::Grid& grid) {
  if (const auto before = std::exchange(before_, nullptr)) before(choices_);
  return rehearse(as_text(grid));
}

std::unique_ptr<RecordedProgram> RecordedRehearsal::with(const std::string& option, const std::string& value) {
  auto other =
      std::make_unique<RecordedRehearsal>(runner_.without_spill(), with_option(words_, option, value), deadline_);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) return other;
  std::shared_ptr<Shared>& takes = shared_by_option_[option];
  if (takes == nullptr) takes = std::make_shared<Shared>();
  other->shared_ = takes;
  other->moved_ = {option, number};
  return other;
}

// Returns the takes at `sizes` that a program with another value of the option recorded, if this one would record the
// same.
std::optional<trace::TraceFile> RecordedRehearsal::shared(const std::string& sizes) const {
  if (shared_ == nullptr) return std::nullopt;
  const auto known = shared_->find(sizes);
  if (known == shared_->end()) return std::nullopt;
  trace::TraceFile file = known->second;
  const auto asked = std::ranges::find(file.at, moved_.name, &Knob::name);
  if (asked == file.at.end()) return std::nullopt;  // the option is no knob, so it may change every op
  // If the knob has one value in all takes, that was the value asked for (runtime::RehearsalOffer). A program that asks
  // for less than the takes have records that value alone.
  std::set<std::int64_t> values;
  for (const trace::Take& take : file.takes)
    values.insert(std::ranges::find(take.knobs, moved_.name, &Knob::name)->value);
  if (values.size() < 2 || moved_.value < *values.begin()) return std::nullopt;
  asked->value = moved_.value;
  return file;
}

Recorded RecordedRehearsal::rehearse(const std::string& sizes) {
  if (std::optional<trace::TraceFile> file = shared(sizes)) return std::move(*file);
  std::variant<TakeDone, Failure> ended = runner_.run({words_.front(), words_, 0, sizes, deadline_});
  if (auto* failure = std::get_if<Failure>(&ended)) return std::move(*failure);
  trace::TraceFile file = std::move(std::get<TakeDone>(ended).file);
  if (file.takes.empty())
    return Failure{to_int(ExitCode::Failed), {words_.front() + ": there is no take in the trace"}};
  if (shared_ != nullptr) shared_->insert_or_assign(sizes, file);
  return file;
}

}  // namespace ullage::cli
