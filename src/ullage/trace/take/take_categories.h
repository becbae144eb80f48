// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every storage of a take was for. The first row that holds decides.
//
//   gradients         the .grad of a leaf
//   parameters        leaf that requires grad, and: updated after autograd followed it; or its name was told; or it was
//                     there before the first forward pass and autograd followed it (frozen), or nothing is updated at
//                     all
//   inputs            any other such leaf made later (of a penalty on gradients)
//   optimizer state   lives when the optimizer's call is over, and: an op of a call wrote it, that did not make it; or
//   it
//                     was made in a call (or just before, for it) and an op of a later call used it; or no call came
//                     later and it has the size of a parameter
//   workspace         born and freed within one op
//   buffers           made before the first forward pass and alive beyond the second step (where there is none: made
//                     before the last parameter, or written later); from before the recording and used by any op
//   activations       saved for backward; but not what no parameter had part in, saved as a constant
//   inputs            no parameter had part in it, and it was made by an op without tensors or by none, and outlives
//                     it; or it was saved as a constant
//   temporaries       all else that dies within its step or the next
//   activations       all else that forward passes and evaluations made (losses kept in a list)
//   unattributed      the rest; with what is from before the recording and nobody used

#include "ullage/trace/meaning/owners.h"
#include "ullage/trace/meaning/steps.h"
#include "ullage/trace/take/take_index.h"
#include "ullage/trace/take/take_phases.h"

#include <vector>

namespace ullage::trace {

std::vector<Category> take_categories(const TakeIndex& index, const TakePhases& phases, const Steps& steps);

}  // namespace ullage::trace
