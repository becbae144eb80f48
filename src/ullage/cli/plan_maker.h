// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a recording to what `ullage plan` tells: the step, its plan, the verifier's timelines, the curve.

#include "ullage/cli/progress.h"
#include "ullage/report/plan_report.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

namespace ullage::cli {

struct PlanQuestion {
  std::optional<Bytes> memory;      // of the whole process; none: only the curve is asked for
  std::optional<std::size_t> step;  // from 0; none: a typical one
  plan::Levers levers;
  plan::Rates rates;
  std::uint64_t seed = 1;
  std::uint64_t effort = plan::Ask{}.effort;  // as there
  bool curve = false;
};

// How fast bytes leave the device and come back, where the question's levers want to. Of a processor's memory that is
// measured; where nothing can be spilled that is said on `err`, and nothing is planned to be. Of a card's it is an
// estimate.
void add_rates(PlanQuestion& question, const std::string& device, std::ostream& err);

// BadArgument: there is no such step. BadFile: the file has no step that can be planned, or a plan that was made does
// not pass the verifier.
Result<report::PlanReport> make_plan_report(trace::TraceFile file, const PlanQuestion& question,
                                            const std::string& name, Progress& progress);

}  // namespace ullage::cli
