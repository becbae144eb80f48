// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes what `ullage plan` reports from a recorded take: the step, its plan, the verifier's timelines and the curve.

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
  std::optional<Bytes> memory;      // for the whole process; none: only the curve is wanted
  std::optional<std::size_t> step;  // counted from 0; none: a typical one
  plan::Levers levers;
  plan::Rates rates;
  std::uint64_t seed = 1;
  std::uint64_t effort = plan::Ask{}.effort;  // in simulated ops, as in plan::Ask
  bool curve = false;
  bool bound = true;                        // also the lower bound of the plan's time
  const std::atomic<bool>* stop = nullptr;  // as in plan::Ask
};

// Fills in how fast bytes leave the device and come back, if a lever of the question spills. For the process's memory
// the rates are measured; if nothing can be spilled, a warning goes to `err` and the spilling levers are turned off.
// For a card they are an estimate.
void add_rates(PlanQuestion& question, const std::string& device, std::ostream& err);

// Plans the step. BadArgument if there is no step of that number. BadFile if the file has no step that can be planned,
// or if a plan does not pass the verifier. `name` is the file's, for messages.
Result<report::PlanReport> make_plan_report(trace::TraceFile file, const PlanQuestion& question,
                                            const std::string& name, Progress& progress);

}  // namespace ullage::cli
