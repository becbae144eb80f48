// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether `ullage run` can carry out, within a memory, what was predicted not to fit it plainly.

#include "ullage/cli/plan_maker.h"
#include "ullage/cli/progress.h"
#include "ullage/predict/prediction.h"

#include <iosfwd>

namespace ullage::cli {

// Plans the prediction's take for its `memory` and says so in `planned`. Nothing where it fits plainly, where no memory
// was asked about, or where its steps cannot be planned: why is said on `err`, as is a place that nothing can be moved
// to.
void add_planned_fit(predict::Prediction& prediction, Progress& progress, std::ostream& err);

// Its plan, as `ullage plan` makes it. The prediction has a memory; the question's is not looked at. Errors as of
// make_plan_report().
Result<report::PlanReport> plan_prediction(const predict::Prediction& prediction, PlanQuestion question,
                                           Progress& progress);

}  // namespace ullage::cli
