// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a program with a remedy, on the dry card or on this machine's CPU, and says what it took. AdviseRuns is the
// interface; rehearsed_runs.h makes the one for shipped programs.

#include "ullage/advise/advice.h"
#include "ullage/advise/facts.h"
#include "ullage/advise/trials.h"
#include "ullage/base/knob.h"
#include "ullage/cli/dry_run.h"
#include "ullage/cli/take_runner.h"
#include "ullage/predict/prediction.h"
#include "ullage/report/run_report.h"
#include "ullage/trace/input.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ullage::cli {

// One run to make.
struct TryOrder {
  const advise::Trial* trial = nullptr;  // null: the program as it is
  bool second_try = false;               // also with the trial's `if_refused`
  std::vector<Knob> knobs;               // for the placeholders in the command
  bool refuses = true;                   // false: the card serves every request, which shows the program's true peak
  bool history = false;                  // record what held the memory, for `explain`
  bool curve = false;                    // keep the curve of what it held
  bool plainly = false;                  // on the CPU: without Ullage's runtime
  bool lean_malloc = false;              // with advise::kLeanMalloc in the environment
  bool planned = false;                  // on a card: under Ullage, held to the card's memory; without a trial
  bool timed = false;                    // on a card: only say how long a step would take; take no peak from such a run
  // Of a shipped program: if its prediction needs other sizes after its first recording, called once before these, with
  // the program's options. Other runs may be made meanwhile.
  std::function<void(const std::vector<Choice>&)> choices_known;
  std::chrono::steady_clock::time_point deadline;  // the program is killed then
};

// The result of a run.
struct Tried {
  enum class End {
    Fits,      // it ran its steps within the memory
    RanOut,    // a request could not be served, or the peak is above the memory
    TimeOver,  // it was ended at the deadline
    Failed,    // for another reason: `error` says which
  };
  End end = End::Failed;
  Bytes peak;       // if RanOut on a card that refuses: the bytes held at the refusal, not the program's need
  Bytes tensors;    // on a card: the peak of tensors, and the context. No allocator needs less
  Bytes others;     // on the CPU: the part of `peak` that is not of the process that trains
  Bytes host_peak;  // of this machine's memory, that a dry run took
  // The time of a step. On the CPU it is CPU time if the program has an optimizer, else by the clock. On a card it is
  // estimated from the card's rates, if `timed`.
  std::optional<Seconds> step;
  std::string error;                    // one line
  std::vector<std::string> last_lines;  // of a program that failed
  advise::Facts facts;
  std::optional<trace::Input> history;            // where asked for and recorded
  std::optional<advise::Curve> curve;             // where asked for and recorded
  std::optional<predict::Prediction> prediction;  // on the CPU
  std::optional<report::PlanFollowed> plan;       // of an order with `planned`: the plan that was followed
  Bytes moved_out;                                // of such an order: bytes that left the card
  Bytes locked;                                   // and the most host memory that was locked for them
  std::vector<Choice> choices;                    // of a shipped program
  std::optional<advise::Effect> effect;           // of the trial's options, as the program says
  std::vector<std::string> typed;                 // a shipped program with these options, as a person writes it
  int exit_code = 1;                              // for Failed
  bool interrupted = false;                       // by a signal; `exit_code` says which
};

class AdviseRuns {
 public:
  virtual ~AdviseRuns() = default;
  // May be called on as many threads at once as side_by_side() says.
  virtual Tried run(const TryOrder& order) = 0;
  // Returns how many runs may go at once, if each takes `host_peak` of this machine's memory; at least 1. On the CPU it
  // is always 1, because steps are measured there.
  virtual std::size_t side_by_side(Bytes host_peak) const = 0;
};

// On stand-ins for a card.
std::unique_ptr<AdviseRuns> dry_runs(Launch program, DryRunner runner, std::string device, DryCard card,
                                     ScratchFolder scratch);

// Describes a run that failed, was interrupted, or ran out of time. `error` is the last of the failure's lines, because
// that line says what is wrong; the line before it says only that something is. A failure without lines is an
// interruption.
Tried tried_of(Failure failure);

// On this machine: recorded under Ullage's runtime with a budget of `machine`, this machine's memory. What it has no
// room for is spilled. The peak is what all processes of the program need under `ullage run`; it fits if that is at
// most `memory`. If the order says so, the program runs without the runtime, and the peak is what its processes held.
// `spill` and `here` are those of TakeRunner: with `here` the program runs in the working folder, else in an empty one.
std::unique_ptr<AdviseRuns> cpu_runs(Launch program, Bytes memory, Bytes machine, store::SpillPlace spill, bool here,
                                     Progress& progress, ScratchFolder scratch);

}  // namespace ullage::cli
