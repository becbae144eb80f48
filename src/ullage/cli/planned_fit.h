// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out whether `ullage run` can fit a predicted program into a memory that it does not fit without a plan.

#include "ullage/cli/plan_maker.h"
#include "ullage/cli/progress.h"
#include "ullage/predict/prediction.h"

#include <atomic>
#include <iosfwd>
#include <optional>

namespace ullage::cli {

// Plans the prediction's take for its `memory` and stores the result in `planned`. Leaves `planned` empty if the
// program fits without a plan, if no memory was asked about, or if its steps cannot be planned. Writes to `err` why no
// plan was made, or that there is no place to spill to. `stop` as in plan::Ask. Returns what `ullage plan` would report
// of the plan; nothing if `planned` is left empty.
std::optional<report::PlanReport> add_planned_fit(predict::Prediction& prediction, Progress& progress,
                                                  std::ostream& err, const std::atomic<bool>* stop = nullptr);

// Plans the prediction's take for its memory with these levers alone. Returns nothing if it cannot be planned.
std::optional<predict::PlannedFit> planned_fit_with(const plan::Levers& levers, const predict::Prediction& prediction,
                                                    Progress& progress, std::ostream& err,
                                                    const std::atomic<bool>* stop);

// Returns the plan of the prediction's take, as `ullage plan` makes it, for the prediction's memory. The prediction
// must have one; `question.memory` is ignored. Errors: as make_plan_report().
Result<report::PlanReport> plan_prediction(const predict::Prediction& prediction, PlanQuestion question,
                                           Progress& progress);

}  // namespace ullage::cli
