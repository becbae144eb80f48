// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scratch that a kernel takes at some sizes and not at others (thresholds.h: varying_scratch()) would make takes part
// that do the same in all that matters. It is found here and left out; an allowance stands for it in what is predicted.
//
//   batch 2   aten::convolution_backward   a   b       c        blocks born and freed within the op, in their order
//   batch 3   aten::convolution_backward   a   b   x   c        x is left out: without it all are on polynomials
//   batch 4   aten::convolution_backward   a   b   x   c

#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <vector>

namespace ullage::predict {

// Index: the take in the file, then StorageId. `order`: as in Sequence. An op keeps all its blocks where those to leave
// out are more than varying_scratch() of it.
std::vector<std::vector<bool>> varying_blocks(const trace::TraceFile& file, const Grid& grid,
                                              const std::vector<std::size_t>& order);

}  // namespace ullage::predict
