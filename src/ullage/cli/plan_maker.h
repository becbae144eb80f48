// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans a step of a recorded take, and makes what `ullage plan` reports of it: the step, its plan, the verifier's
// timelines and the curve. Edit this if `ullage plan` gets a new option.

#include "ullage/cli/progress.h"
#include "ullage/report/plan_report.h"
#include "ullage/trace/take/take.h"

#include <atomic>
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

namespace ullage::cli {

struct PlanQuestion {
  std::optional<Bytes> memory;      // for the whole process; none: no plan is made, and `curve` should be true
  std::optional<std::size_t> step;  // counted from 0; none: the last step of the most frequent kind
  plan::Levers levers;
  plan::Rates rates;
  std::uint64_t seed = 1;
  std::uint64_t effort = plan::Ask{}.effort;  // how long to search, in simulated ops, as in plan::Ask
  bool curve = false;                         // also plan for budgets between the least and the plain need
  bool bound = true;                          // also work out the lower bound of the time that the plan adds
  const std::atomic<bool>* stop = nullptr;    // if it becomes true, the search ends early, as in plan::Ask
};

// Fills in how fast bytes leave the device and come back, if a lever of the question spills. Replaces the rates that
// are there: a caller with rates of its own (--rate) does not call this. On the CPU ("cpu") the rates are measured; if
// nothing can be spilled, a warning goes to `err` and the spilling levers are turned off. For a card the rates are an
// estimate.
void add_rates(PlanQuestion& question, const std::string& device, std::ostream& err);

// Plans the step. `name` is the file's, for messages. BadArgument if there is no step of that number. BadFile if the
// file has no step that can be planned. Also if the verifier rejects the step or a plan: then the file contradicts
// itself, or the planner has an error.
Result<report::PlanReport> make_plan_report(trace::TraceFile file, const PlanQuestion& question,
                                            const std::string& name, Progress& progress);

}  // namespace ullage::cli
