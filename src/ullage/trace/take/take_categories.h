// SPDX-License-Identifier: Apache-2.0
#pragma once

// The category of every storage of a take. The first row that applies decides, so a category may have two rows. These
// words have a meaning of their own here:
//
//   early             made before the recording, or before the loading ends
//   the loading ends  when the first forward pass begins; if nothing requires grad, when the second step begins
//   from parameters   made by a backward pass, or made from or written with: a leaf that requires grad, a gradient, or
//                     anything from parameters
//   followed          a leaf that an op read while autograd was recording (TakeIndex)
//   updated           written after the loading, outside backward passes, by an op that did not make it
//   a call            a call of an optimizer, with the ops just before it that prepare it (take_phases.h)
//   alive at the end  not freed within the recording
//
//   gradients         the .grad of a leaf
//   parameters        a leaf that requires grad, and one of:
//                     - the program named it
//                     - it is followed, and one of: updated, read by an optimizer, early (a frozen one)
//                     - it is early, and no followed leaf is updated (a program that does not train)
//   inputs            any other leaf that requires grad and is not early (for a gradient penalty)
//   optimizer state   made in a call, alive when that call is over, and one of:
//                     - an op that did not make it wrote it in a call
//                     - an op of a later call used it
//                     - no call came later, it is alive at the end, and it has the size of a parameter
//   optimizer state   not made in a call, but early, and written in a call by an op that did not make it
//   workspace         born and freed within one op
//   buffers           made before the recording, and used by any op
//   buffers           made in the recording, early, and one of:
//                     - alive when the third step begins
//                     - alive at the end of a take without a third step, and made before the last parameter
//                     - alive at the end of a take without a third step, and updated
//   activations       saved for backward, and one of:
//                     - from parameters
//                     - saved at least once as something other than a constant
//   inputs            not from parameters, not made before the recording, and one of:
//                     - saved for backward
//                     - made outside any op
//                     - made by an op without tensor inputs, outside backward passes and optimizers
//   unattributed      anything else that was made before the recording
//   temporaries       anything else that dies within its step or the next
//   activations       anything else that forward passes and evaluations made (losses kept in a list)
//   unattributed      the rest

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_phases.h"

#include <vector>

namespace ullage::trace {

// Index: StorageId.
std::vector<Category> take_categories(const TakeIndex& index, const TakePhases& phases, const Steps& steps);

}  // namespace ullage::trace
