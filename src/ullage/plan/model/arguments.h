// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two questions about an op's tensor arguments: which of them it never reads, and whether the recording has them all.

#include "ullage/trace/take/take.h"

#include <string_view>
#include <vector>

namespace ullage::plan {

// Returns the tensors that the op returned if `results`, else those that it received, in their order.
std::vector<trace::TensorUse> uses_of(const trace::OpDetail& detail, bool results);

// Returns the storages of arguments that the op does not read, so that they need not be present. The table is searched
// by the op's name. It was tested with pages that fault when touched: contiguous, channels-last and transposed; float,
// double and bfloat16; with oneDNN and without.
//   views, and ops like empty_like                        all arguments
//   backward of pooling, of padding, of nll_loss          the forward pass's input: its sizes are enough
//   convolution_backward with no gradient for the weight  the input, if there is one group. (A contiguous input with a
//                                                         channels-last weight is read all the same: torch reorders
//                                                         it and does not use the result. The table does not know
//                                                         layouts and lists the input here too.)
//   convolution_backward with no gradient for the input   the weight
// Empty if another argument shares the one unread storage, or if the op failed.
std::vector<StorageId> unread_storages(std::string_view name, const trace::OpDetail& detail);

// Can the op be run again from what is recorded? Only tensors of the pool are recorded. Of the others, weights mapped
// from a file change by ops only; tensors of numpy and the like may change without any op. OpDetail::outside says which
// of the two kinds the op read. Not every recording says it. So this returns false too if fewer tensors were recorded
// than an op of this name needs. For ops on lists ("cat", "stack") it compares the number of elements instead: the
// arguments must have as many as the results.
bool all_arguments_seen(std::string_view name, const trace::OpDetail& detail);

}  // namespace ullage::plan
