// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program with a remedy, or with several together, until the time of the question is over, and says how it went.
// Edit this to change how a run is judged; the order of the runs is in adviser.cpp.

#include "ullage/advise/advice.h"
#include "ullage/advise/trials.h"
#include "ullage/base/knob.h"
#include "ullage/cli/advise_runs.h"
#include "ullage/cli/dry_card.h"
#include "ullage/cli/progress.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

// What was asked, checked before any work starts.
struct AdviseQuestion {
  std::optional<Knob> knob;         // the size that is searched, at the wanted value; none: no size is
  std::optional<DryCard> card;      // none: on this machine's CPU
  std::string device;               // as written
  Bytes memory;                     // of the card, or stated, or `machine`
  Bytes machine;                    // what this machine gives
  std::vector<std::string> target;  // as written: "--" and a command, or a shipped program
  Seconds seconds;                  // for everything
  std::chrono::steady_clock::time_point began;
  bool curves = false;  // keep the curve of each run that is recorded
};

struct TrialOutcome {
  advise::Row row;
  std::optional<Seconds> step;
  bool second_try = false;  // with the trial's `if_refused`
  bool failed = false;      // not for lack of memory
  bool late = false;        // time was over before it ended
};

// May be used on several threads at once, if the runs do not disturb each other.
class TrialRunner final {
 public:
  TrialRunner(AdviseRuns& runs, const AdviseQuestion& question, Progress& progress);

  bool on_card() const { return question_.card.has_value(); }
  std::chrono::steady_clock::time_point deadline() const;
  // The middle between now and the deadline.
  std::chrono::steady_clock::time_point halfway() const;
  // The time is over, or a signal came: a run in progress is ended, and none should begin.
  bool is_over() const;
  std::string time_over() const;
  // A signal came; `stopped` is the run that it ended.
  bool is_interrupted() const { return interrupted_.load(); }
  const Tried& stopped() const { return stopped_; }
  std::size_t runs_made() const { return runs_made_.load(); }
  std::size_t side_by_side() const { return runs_.side_by_side(host_peak_); }

  // An order at the size asked about.
  TryOrder order(const advise::Trial* trial = nullptr) const;
  // `what` is for the line of progress.
  Tried run(const TryOrder& order, const std::string& what);
  // Returns whether the program fits, and its peak. On a card it first runs on a card that serves every request. Up to
  // the card's memory, such a card and one that refuses requests do the same. If the peak is above that, the program
  // also runs on the card that refuses, because its allocator may find room after a refused request. The second run is
  // left out if the tensors alone need too much.
  Tried judge(TryOrder order, const std::string& what);
  // Judges the trial, with its second switches too if the program fails. Its row says what was found. A run that goes
  // on beyond `until` is ended, and the outcome is `late`.
  TrialOutcome outcome_of(const advise::Trial& trial) { return outcome_of(trial, deadline()); }
  TrialOutcome outcome_of(const advise::Trial& trial, std::chrono::steady_clock::time_point until);

 private:
  void show();

  AdviseRuns& runs_;
  const AdviseQuestion& question_;
  Progress& progress_;
  std::atomic<std::size_t> runs_made_{0};
  std::atomic<bool> interrupted_{false};
  std::mutex lock_;  // for the next three
  std::vector<std::string> running_;
  Bytes host_peak_;
  Tried stopped_;
};

}  // namespace ullage::cli
