// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long one step takes.

#include "ullage/trace/steps.h"
#include "ullage/trace/take.h"

namespace ullage::predict {

// The median of the take's whole steps but the first, where there are more; zero: the times are not known. Of an
// evaluated take it is the estimate that op_times.h makes.
Seconds step_time(const trace::Take& take, const trace::Steps& steps);

}  // namespace ullage::predict
