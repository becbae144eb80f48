// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/trial_runner.h"

#include "ullage/base/sizes.h"
#include "ullage/report/command_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ullage::cli {
namespace {

using advise::Row;
using advise::Trial;
using Clock = std::chrono::steady_clock;

Row row_of(const Trial& trial) {
  Row row;
  row.id = trial.id, row.name = trial.name, row.effect = trial.effect;
  row.action = trial.action, row.place = trial.place;
  return row;
}

}  // namespace

TrialRunner::TrialRunner(AdviseRuns& runs, const AdviseQuestion& question, Progress& progress)
    : runs_(runs), question_(question), progress_(progress) {}

Clock::time_point TrialRunner::deadline() const {
  return question_.began +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(question_.seconds.count));
}

Clock::time_point TrialRunner::halfway() const {
  const Clock::time_point now = Clock::now();
  return now + std::max(deadline() - now, Clock::duration{}) / 2;
}

bool TrialRunner::is_over() const { return is_interrupted() || Clock::now() >= deadline(); }

std::string TrialRunner::time_over() const {
  return fmt::format("the time limit of {} was reached; --seconds raises it", to_string(question_.seconds));
}

TryOrder TrialRunner::order(const Trial* trial) const {
  TryOrder order;
  order.trial = trial;
  order.deadline = deadline();
  order.curve = question_.curves;
  order.plainly = order.lean_malloc = trial != nullptr && trial->is_plain;
  if (question_.knob) order.knobs = {*question_.knob};
  return order;
}

// Shows what is running. Call it with `lock_` held.
void TrialRunner::show() {
  if (running_.empty()) {
    progress_.pause();
  } else {
    progress_.stage(fmt::format("{}", fmt::join(running_, " | ")));
  }
}

Tried TrialRunner::run(const TryOrder& order, const std::string& what) {
  {
    const std::lock_guard lock(lock_);
    running_.push_back(what);
    show();
  }
  ++runs_made_;
  Tried tried = runs_.run(order);
  const std::lock_guard lock(lock_);
  running_.erase(std::ranges::find(running_, what));
  show();
  host_peak_ = std::max(host_peak_, tried.host_peak);
  if (tried.interrupted) stopped_ = tried, interrupted_ = true;
  return tried;
}

Tried TrialRunner::judge(TryOrder order, const std::string& what) {
  order.refuses = !on_card();
  Tried tried = run(order, what);
  if (!on_card() || tried.end != Tried::End::RanOut || tried.tensors > question_.memory || is_over()) return tried;
  order.refuses = true, order.history = false;
  Tried refused = run(order, what + ", on a card that refuses requests");
  if (refused.end == Tried::End::Fits)
    tried.end = refused.end, tried.peak = refused.peak, tried.curve = std::move(refused.curve);
  if (refused.end == Tried::End::TimeOver) tried.end = refused.end;
  return tried;
}

TrialOutcome TrialRunner::outcome_of(const Trial& trial, Clock::time_point until) {
  TrialOutcome outcome{row_of(trial), {}};
  Row& row = outcome.row;
  const auto late = [&] {
    row.basis = advise::Basis::NotTried;
    row.note = "not tried: " + time_over();
    outcome.late = true;
    return outcome;
  };
  if (is_over()) return late();
  TryOrder with = order(&trial);
  with.deadline = std::min(with.deadline, until);
  Tried tried = judge(with, trial.name);
  if (tried.end == Tried::End::Failed && !trial.if_refused.empty() && !is_over()) {
    with.second_try = outcome.second_try = true;
    tried = judge(with, trial.name);
    row.action += trial.more_action;
  }
  if (tried.end == Tried::End::TimeOver) return late();
  if (tried.end == Tried::End::Failed) {
    row.note = "tried, and the program failed: " + tried.error;
    outcome.failed = true;
    return outcome;
  }
  // The switch does nothing inside an autocast of the program's own, also if that is off. Then the program ran as it
  // is.
  if (trial.switches.find("autocast=") != std::string::npos && !tried.facts.cast) {
    row.basis = advise::Basis::NotTried;
    row.note =
        "not tried: no forward pass came under it. If the program has an autocast of its own that is off, turn that on";
    return outcome;
  }
  row.fits = tried.end == Tried::End::Fits;
  row.peak = tried.peak;
  row.curve = std::move(tried.curve);
  if (tried.effect) row.effect = *tried.effect;
  if (!tried.typed.empty()) {
    tried.typed.front() = question_.target.front();
    row.action = report::whole_command_line("run --memory " + report::as_stated(question_.memory), tried.typed);
  }
  if (tried.prediction && tried.prediction->law == predict::Law::Bound) row.note = "its peak is at most this";
  outcome.step = tried.step;
  return outcome;
}

}  // namespace ullage::cli
