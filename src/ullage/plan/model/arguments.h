// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an op does with the tensors that it gets: which it never looks at, and whether the recording has them all.

#include "ullage/trace/take/take.h"

#include <string_view>
#include <vector>

namespace ullage::plan {

// The tensors that the op received, or those that it returned, in their order.
std::vector<trace::TensorUse> uses_of(const trace::OpDetail& detail, bool results);

// Storages that the op gets and looks at no byte of; their pages need not be there. By name, as far as it was tried
// with pages that cannot be touched (contiguous, channels last and transposed; float, double, bfloat16; with oneDNN and
// without):
//   views, and what is made like another tensor           all
//   backward of pooling, of padding, of nll_loss          the input of the forward pass: its sizes are enough
//   convolution_backward with no gradient for the weight  the input, where there is one group. One that is contiguous
//                                                         where the weight is channels last is reordered, for nothing
//   convolution_backward with no gradient for the input   the weight
std::vector<StorageId> unread_storages(std::string_view name, const trace::OpDetail& detail);

// Only tensors of the pool are recorded. False: an op of this name needs more of them than were seen; the others are
// somebody else's (numpy's, a mapped file's), and may be changed with nobody saying so. Lists are told by the size of
// what is made of them.
bool all_arguments_seen(std::string_view name, const trace::OpDetail& detail);

}  // namespace ullage::plan
