// SPDX-License-Identifier: Apache-2.0
#pragma once

// What `ullage run` says after the program ended: one struct of figures, made from the ledger (what the runtime wrote
// while it lived) and from what the operating system said of the ended process. docs/cli.md has the JSON, field by
// field.

#include "ullage/base/bytes.h"
#include "ullage/store/ledger.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

enum class Outcome { Done, Failed, Infeasible, KilledByKernel, Interrupted };

// As in the JSON: "done", "failed", "infeasible", "killed_by_kernel", "interrupted".
const char* name(Outcome outcome);

// What the control groups counted of kills for lack of memory while the program ran.
enum class OomKills { Unreadable, Unchanged, Rose };

// What the launcher saw, the ledger aside.
struct ProcessEnd {
  std::vector<std::string> command;        // as executed
  std::vector<std::string> target;         // as typed after the options: a program and its words, or "--" and a command
  std::optional<std::string> report_file;  // where the report goes, for the summary's last line
  std::optional<std::string> record_file;  // where the trace was asked to go
  int exit_code = 0;                       // the command's own, 128 + n for signal n
  std::optional<int> signal;               // that ended the command itself
  Bytes peak;                              // the largest process of the ended tree, as wait4 tells (ru_maxrss)
  Seconds wall;
  OomKills oom_kills = OomKills::Unreadable;
};

// What was moved between memory and the spill file, all processes together.
struct Moving {
  Bytes out;
  Bytes back;
  Seconds waited;          // threads of the program, for moving
  Seconds beside;          // of moving, while the program computed
  Bytes peak;              // in the spill files; of several processes the sum of their peaks
  Bytes rewrites_avoided;  // not written again, as they had not changed
  Bytes unmovable;         // small storages, and the most that one op used of storages that are not the pool's
  std::uint64_t unannounced_accesses = 0;
  std::string message;  // why it failed last, one line

  bool happened() const { return out > Bytes{} || back > Bytes{}; }
};

// The plan that the run followed; seconds and counts are of one step where nothing else is said.
struct PlanFollowed {
  Bytes peak;       // most bytes of tensors present at once, as planned
  Bytes peak_seen;  // and as counted; zero: no step ran as planned from end to end
  Seconds overhead;
  std::optional<Seconds> bound;  // none: not worked out
  std::uint64_t recomputes = 0;  // ops that are run again
  std::uint64_t spills = 0;      // storages that are spilled
  std::uint64_t adopted_at_step = 0;
  std::uint64_t plans = 0;       // in the run: above 1 where it was made again
  std::uint64_t steps = 0;       // of the run, that went as planned from end to end
  std::uint64_t deviations = 0;  // in the run: the program did something else
  std::uint64_t rescues = 0;     // in the run: storages evicted or recomputed on demand all the same
};

// Empty values are what this run or this version cannot know; null in the JSON.
struct RunReport {
  ProcessEnd end;
  Outcome outcome = Outcome::Failed;
  bool attached = false;              // the runtime was in some process of the tree and took a slot
  std::optional<Bytes> budget;        // none: unlimited
  std::optional<std::uint64_t> card;  // whose bytes budget, process and pool are of; none: the process's memory
  Bytes host_memory;                  // of the machine, given to what leaves the card

  Bytes process_peak;                 // of the largest process; never below what the runtime saw of itself
  std::optional<Bytes> tree_peak;     // of all processes together, pages they share once; none: one alone, or a card
  Bytes over_budget;                  // bytes by which the larger of the two passed the budget
  std::optional<Bytes> outside_pool;  // of process_peak, what is not the pool
  std::optional<Bytes> pool_peak;     // live bytes at the pool's own peak
  std::optional<Bytes> pool_resident_peak;
  std::optional<Bytes> plain_pool_peak;  // none when a request was refused: the plain program would have gone on
  std::optional<Bytes> plain_total;      // about what the plain program's process holds: that and what is outside
  std::optional<Bytes> refused_request;  // the last one that was refused
  std::optional<Bytes> least_budget;     // that this run could have done with, as far as it came
  Moving moving;
  std::optional<PlanFollowed> plan;  // of the process with the most steps that have one
  std::uint64_t recomputed_ops = 0;  // of all processes, planned or on demand
  Seconds recompute;                 // likewise
  Bytes tape;                        // that knowing how to recompute took outside the pool, at most

  std::optional<std::uint64_t> threads;  // that torch computed with
  std::optional<std::uint64_t> steps;
  std::optional<Seconds> step_median;  // of the last LedgerSlot::kStepTimes steps
  std::uint64_t refused = 0;           // requests, of all processes
  std::string refused_op;
  // Where something was refused: the runtime's least budget if that is above the stated one, else a budget that would
  // have served it with nothing moved, a twentieth added. Later requests may need more.
  std::optional<Bytes> budget_to_try;
  std::string message;  // the runtime's last refusal or warning, one line
  std::optional<std::string> state_sha256;

  bool recorded = false;             // the trace that was asked for was written
  std::uint64_t recorded_steps = 0;  // whole ones, that are sure to be in it
};

// As in the JSON: "cpu", "cuda:0".
// The program did not end by itself: ops that it did not reach may need more than `least_budget`.
bool least_is_partial(const RunReport& report);

std::string device_name(const RunReport& report);

// Of a card's bytes the runtime alone knows: what the operating system says of processes is of the machine's memory.
// Process figures are those of the slot with the highest resident peak, steps those of the slot with the most steps.
RunReport summarize(const store::LedgerPage& page, const ProcessEnd& end);

// One JSON object and a line end.
void write_json(const RunReport& report, std::ostream& out);

// At most six lines, each starting "ullage: ".
void write_summary(const RunReport& report, std::ostream& out);

}  // namespace ullage::report
