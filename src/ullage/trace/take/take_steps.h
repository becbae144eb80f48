// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the steps of a take end: as the program reported, else as StepFinder finds them in its ops.

#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"

namespace ullage::trace {

// Returns From::Recorded, or From::Nothing if no step ends. If StepFinder finds the steps, each begins right after the
// last op of the one before. So frees between ops, such as those of gradients, belong to the later step.
Steps take_steps(const TakeIndex& index);

}  // namespace ullage::trace
