// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the curve of a trial for the page of an Advice, from what the trial recorded.

#include "ullage/advise/advice.h"
#include "ullage/plan/fit.h"
#include "ullage/trace/input.h"

#include <optional>

namespace ullage::report {

// If there are several devices or takes, the one with the highest reserved level counts. The curve begins with the
// first step; if no steps are known, it is one. `peak` is the run's, as a Row has it: the curve's highest point.
// Nothing: the input has no history.
std::optional<advise::Curve> curve_of(const trace::Input& input, Bytes peak);

// The curve of a plan: the levels of a planned step, as the last of `steps` steps; the others stay empty.
advise::Curve curve_of(const Table<plan::OpIndex, Bytes>& levels, std::size_t steps, Bytes beside);

}  // namespace ullage::report
