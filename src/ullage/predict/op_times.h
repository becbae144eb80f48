// SPDX-License-Identifier: Apache-2.0
#pragma once

// Estimates how long the ops of an evaluated take would run. The estimate is good enough to decide what is cheaper to
// recompute and what is cheaper to spill.

#include "ullage/trace/take/take.h"

namespace ullage::predict {

// Sets the times of `evaluated`, which is a copy of `copied` (take 0) with other sizes. `measured` is the largest take.
// All three takes have the same ops in the same order. The time of an op is that in `measured`, times the growth in
// elements of the tensor that grows most. For a convolution that is the picture, not the weights. Time between ops
// stays as in `copied`.
void estimate_times(const trace::Take& measured, const trace::Take& copied, trace::Take& evaluated);

}  // namespace ullage::predict
