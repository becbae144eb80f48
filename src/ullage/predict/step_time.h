// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long one step takes: an estimate from the takes.

#include "ullage/predict/sequence.h"
#include "ullage/trace/steps.h"

namespace ullage::predict {

// Of one take: the median of its whole steps but the first, where there are more; zero: the times are not known.
Seconds step_time(const trace::Take& take, const trace::Steps& steps);

// At the evaluated take's size: a line through the takes' times against the bytes that their steps allocate, which grow
// as the work does whatever the knob is. Never below zero, nor below the line's own least take.
Seconds step_time_at(const trace::TraceFile& file, const trace::Take& evaluated, const trace::Steps& steps);

}  // namespace ullage::predict
