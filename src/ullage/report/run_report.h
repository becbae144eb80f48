// SPDX-License-Identifier: Apache-2.0
#pragma once

// The result of `ullage run`. RunReport holds all figures. They come from the ledger, which the runtime wrote, and from
// the operating system's account of the ended process. docs/cli.md has the JSON, field by field.

#include "ullage/advise/facts.h"
#include "ullage/advise/trials.h"
#include "ullage/base/bytes.h"
#include "ullage/report/plan_report.h"
#include "ullage/store/ledger.h"
#include "ullage/trace/take/take.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

enum class Outcome { Done, Failed, Infeasible, KilledByKernel, Interrupted };

// Returns the name in the JSON: "done", "failed", "infeasible", "killed_by_kernel", "interrupted".
const char* name(Outcome outcome);

// Whether the control groups counted kills for lack of memory while the program ran.
enum class OomKills { Unreadable, Unchanged, Rose };

// The counts of a dry card while the program ran (drycard/ledger.h).
struct DryCardCount {
  std::string word;                                 // as the person named the card
  Bytes memory;                                     // what the card has
  Bytes peak;                                       // the most that all processes held at any moment, contexts included
  Bytes pinned_peak;                                // of locked memory of the host
  std::uint64_t launches = 0, unread_launches = 0;  // of kernels; those whose arguments could not be looked at
  // Different kernels that were launched, counted once in each process.
  std::uint64_t kernels = 0;
  Bytes kernel_code;  // code of these kernels: a real card loads it at their first launches
  // Errors that would have corrupted data or crashed on a real card, and requests that the card refused.
  std::uint64_t findings = 0;
  std::vector<std::string> finding_texts;  // the first ones
};

// The launcher's own observations, without the ledger.
struct ProcessEnd {
  std::vector<std::string> command;        // as executed
  std::vector<std::string> target;         // as typed after the options: a program and its words, or "--" and a command
  std::optional<std::string> report_file;  // the report's file, for the summary's last line
  std::optional<std::string> record_file;  // the file that was asked for the trace
  int exit_code = 0;                       // the command's own; 128 + n for signal n
  std::optional<int> signal;               // the signal that ended the command itself
  Bytes peak;                              // peak of the largest process of the tree, from wait4 (ru_maxrss)
  Seconds wall;
  bool out_of_time = false;  // it was killed at its deadline
  OomKills oom_kills = OomKills::Unreadable;
  std::vector<std::string> allowed;  // the words of --allow; empty: not a bit may change
  advise::Facts facts;               // with --allow: what the program did
  std::vector<ComparedWay> ways;     // with --allow CLASSES and a shipped program: those that were looked at
  std::optional<DryCardCount> dry;   // none: no dry run
};

// Who counted the bytes that the budget is judged by.
enum class CountedBy {
  Unknown,        // a card that nobody counted
  System,         // the operating system: VmHWM, and Pss if there are several processes
  DryCard,        // the dry card, at every change
  Driver,         // the card's driver alone: what other processes hold counts as this one's
  DriverAndNvml,  // the driver, less what NVML says that others hold
};
// Returns the name in the JSON, such as "dry card"; nullptr for Unknown.
const char* name(CountedBy by);

// The bytes moved between memory and the spill file, summed over all processes.
struct Moving {
  Bytes out;
  Bytes back;
  Seconds waited;          // time that the program's threads waited for moving
  Seconds beside;          // time of moving while the program computed
  Seconds programs_held;   // time that programs which it started (a compiler) were stopped until there was room
  Bytes peak;              // peak bytes in the spill file; with several processes, the sum of their peaks
  Bytes rewrites_avoided;  // bytes not written again, because they had not changed
  Bytes unmovable;  // bytes of small storages, and the most that one op used outside the pool and no mapped file holds
  Bytes files_let_go;  // bytes of mapped files that were let go; the next touch reads them again
  std::uint64_t unannounced_accesses = 0;
  std::optional<Bytes> locked;  // host memory that was locked for evicted tensors; none: the budget is no card's
  std::string lock_failure;     // why no more could be locked, one line
  std::string message;          // why moving failed last, one line

  bool happened() const { return out > Bytes{} || back > Bytes{}; }
};

// The plan that the run followed. Times and counts are per step unless stated otherwise.
struct PlanFollowed {
  Bytes peak;                    // most bytes of tensors present at once, as planned
  Bytes peak_seen;               // the same as counted; zero: no step ran as planned from end to end
  Seconds step;                  // the observed step that the plan was made for; zero: not known
  Seconds overhead;              // what the plan adds to it
  std::optional<Seconds> bound;  // none: not computed
  std::uint64_t recomputes = 0;  // ops that are run again
  std::uint64_t spills = 0;      // storages that are spilled
  std::uint64_t adopted_at_step = 0;
  std::uint64_t plans = 0;       // in the run; above 1: planned again
  std::uint64_t steps = 0;       // in the run: steps that ran as planned from end to end
  std::uint64_t deviations = 0;  // in the run: how often the program did something else
  std::uint64_t rescues = 0;     // in the run: storages evicted or recomputed on demand despite the plan
  store::DriverCalls calls{};    // of a card's driver, in the last step that ran as planned
  Bytes away, back;              // bytes that were spilled or dropped in that step, and read back
};

// Which steps ran in bf16 by --allow bf16,if-needed, and what decided that, in the process with the most steps.
struct CastSteps {
  // No step was cast; no exact plan fits; the exact plan costs too much time. In the order of LedgerSlot::cast_why.
  enum class Why { NotNeeded, NoExactPlan, DearPlan };
  Why why = Why::NotNeeded;
  std::uint64_t from = 0;                        // from 1 on; 0: none ran in bf16
  std::uint64_t until = 0;                       // the first one after `from` that was exact again; 0: none was
  std::optional<Seconds> exact_step, cast_step;  // the shortest one that was timed
};

// An empty value means that this run or this version cannot know it; it is null in the JSON.
struct RunReport {
  ProcessEnd end;
  Outcome outcome = Outcome::Failed;
  bool attached = false;              // some process of the tree had the runtime and took a slot
  std::optional<Bytes> budget;        // none: unlimited
  std::optional<std::uint64_t> card;  // the card whose bytes budget, process and pool are; none: the process's memory
  CountedBy counted_by = CountedBy::Unknown;
  std::string count_note;  // CountedBy::Driver: why NVML does not say what others hold
  Bytes host_memory;       // most locked host memory for tensors evicted from the card

  Bytes process_peak;                 // peak of the largest process; at least what the runtime saw of itself
  std::optional<Bytes> tree_peak;     // of all processes, shared pages counted once; none: one process alone, or a card
  Bytes over_budget;                  // bytes by which the larger of the two exceeded the budget
  std::optional<Bytes> outside_pool;  // the part of process_peak that is not the pool's
  std::optional<Bytes> pool_peak;     // peak of the pool's live bytes
  std::optional<Bytes> pool_resident_peak;
  std::optional<Bytes> plain_pool_peak;  // none if a request was refused: the plain program would have gone on
  std::optional<Bytes> plain_total;      // at least what the plain program would hold: plain_pool_peak and outside_pool
  std::optional<Bytes> refused_request;  // bytes of the last refused request
  std::optional<Bytes> least_budget;     // the least budget with which this run could have come as far as it did
  Moving moving;
  std::optional<PlanFollowed> plan;                // of the process with the most steps among those with a plan
  std::uint64_t recomputed_ops = 0;                // in all processes, planned or on demand
  Seconds recompute;                               // the time for these
  std::optional<store::DriverCalls> driver_calls;  // in all processes; none: the budget is no card's
  Bytes tape;                                      // peak bytes of the tape, outside the pool

  std::optional<std::uint64_t> threads;  // threads that torch computed with
  std::optional<std::uint64_t> steps;
  std::optional<Seconds> step_median;  // over the last LedgerSlot::kStepTimes steps
  std::uint64_t refused = 0;           // refused requests of all processes
  std::string refused_op;
  // A budget to try if something was refused, or if the runtime would not start or could not go on. It is the runtime's
  // least budget if that is above the stated one. Otherwise it is a budget, with 5 % added, that would have served the
  // request with nothing moved. Later requests may need more.
  std::optional<Bytes> budget_to_try;
  bool ended_for_programs = false;  // the run was ended because of what programs without a pool take
  std::string message;              // the runtime's last refusal or warning, one line
  std::optional<std::string> state_sha256;

  advise::Effect effect = advise::Effect::SameBits;  // on the results, of the switches of --allow and of `changes`
  std::vector<trace::ResultChange> changes;          // options of a shipped program that change its results
  std::optional<CastSteps> cast_steps;               // with --allow bf16,if-needed
  std::optional<std::uint64_t> half_ops;             // with --allow: ops that ran in bf16, of all processes

  bool recorded = false;             // the trace that was asked for was written
  std::uint64_t recorded_steps = 0;  // whole steps that are surely in it
};

// Returns whether `least_budget` is partial. Either the run was not done, and ops that it did not reach may need more.
// Or nothing had to be moved. The runtime notes what is needed when memory is short, so it has not seen all of it then.
bool least_is_partial(const RunReport& report);

// Returns the name in the JSON: "cpu", "cuda:0".
std::string device_name(const RunReport& report);

// Says which results differ. With --allow: what ran in bf16, or why nothing did. Otherwise: which options of the
// program change its results. "" if there is nothing to say.
std::string allowance_line(const RunReport& report);

// Makes the report. On a card all figures of bytes come from the runtime, because the operating system knows only the
// machine's memory. On a dry card the process's peak comes from the dry card. Process figures are those of the slot
// with the highest resident peak; steps are those of the slot with the most steps.
RunReport summarize(const store::LedgerPage& page, const ProcessEnd& end);

// Writes one JSON object and a line end.
void write_json(const RunReport& report, std::ostream& out);

// Writes at most six lines, and one more for the findings of a dry run, each starting with "ullage: ".
void write_summary(const RunReport& report, std::ostream& out);

}  // namespace ullage::report
