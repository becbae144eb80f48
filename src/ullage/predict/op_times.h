// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the ops of an evaluated take would run: an estimate, good enough to weigh what is cheaper to make again
// against what is cheaper to move.

#include "ullage/trace/take/take.h"

namespace ullage::predict {

// An op takes as much longer than in `measured` as that of its tensors has more elements which grows most: of a
// convolution the picture, not the weights. `evaluated` is a copy of `copied` with other sizes; all three do the same
// ops in the same order. What lies between ops takes as long as before.
void estimate_times(const trace::Take& measured, const trace::Take& copied, trace::Take& evaluated);

}  // namespace ullage::predict
