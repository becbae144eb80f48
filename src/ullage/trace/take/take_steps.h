// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the steps of a take end: as the program told, else as StepFinder finds them in its ops.

#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"

namespace ullage::trace {

// From::Recorded, or From::Nothing where there are none. A step begins behind the last op of the one before, so that
// the frees of gradients that no op does are in it.
Steps take_steps(const TakeIndex& index);

}  // namespace ullage::trace
