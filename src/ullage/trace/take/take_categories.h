// SPDX-License-Identifier: Apache-2.0
#pragma once

// The category of every storage of a take. The first row that applies decides. "Early" means made before the first
// forward pass (before the second step if nothing requires grad) or before the recording. "Made from parameters" means
// directly or through other ops, and includes what backward passes make.
//
//   gradients         the .grad of a leaf
//   parameters        a leaf that requires grad, and one of:
//                     - the program named it
//                     - autograd followed it, and it is updated, read by an optimizer or early (frozen)
//                     - it is early, and no leaf that autograd followed is updated
//   inputs            any other such leaf that is not early (for a gradient penalty)
//   optimizer state   made in an optimizer's call (or just before, for it), alive when that is over, and one of:
//                     - an op that did not make it wrote it in a call
//                     - an op of a later call used it
//                     - no call came later, it is alive at the end and has the size of a parameter
//                     else: early, and written in a call
//   workspace         born and freed within one op
//   buffers           early, and one of:
//                     - from before the recording, and used by any op
//                     - made in the recording, and alive when the third step begins
//                     - made in the recording, alive at the end of a take without a third step, and made before the
//                       last parameter or written after the loading
//   activations       saved for backward, and made from parameters or saved as something other than a constant
//   inputs            not made from parameters, not from before the recording, and one of:
//                     - saved for backward
//                     - made outside any op
//                     - made by an op without tensor inputs, outside backward passes and optimizers
//   temporaries       anything else that dies within its step or the next, unless from before the recording
//   activations       anything else that forward passes and evaluations made (losses kept in a list)
//   unattributed      the rest

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_phases.h"

#include <vector>

namespace ullage::trace {

std::vector<Category> take_categories(const TakeIndex& index, const TakePhases& phases, const Steps& steps);

}  // namespace ullage::trace
