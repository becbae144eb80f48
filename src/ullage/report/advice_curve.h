// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the curve of a trial, the bytes over time, for the page of an Advice. It is made from what the trial recorded,
// or from a plan. Edit this to change what the chart's points are.

#include "ullage/advise/advice.h"
#include "ullage/plan/fit.h"
#include "ullage/trace/input.h"

#include <optional>

namespace ullage::report {

// Makes the curve of a recording. If the recording has several devices or takes, the curve is that of the one with the
// highest reserved level. The curve begins with the first step; without known steps, all of the recording is one step.
// `peak` is the peak of the run, as in Row::peak, and the highest point of the curve. Curve::beside is what `peak` has
// beyond the reserved bytes. Nothing: the input has no history.
std::optional<advise::Curve> curve_of(const trace::Input& input, Bytes peak);

// Makes the curve of a plan from the levels of its step. The chart has `steps` steps. The planned step is the last of
// them, so it stands where the last recorded one does; the others stay empty.
advise::Curve curve_of(const Table<plan::OpIndex, Bytes>& levels, std::size_t steps, Bytes beside);

}  // namespace ullage::report
