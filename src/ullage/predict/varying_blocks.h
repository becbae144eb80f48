// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds scratch that a kernel takes at some sizes and not at others (thresholds.h: varying_scratch()). The comparison
// leaves it out, because otherwise takes that agree in everything else would count as different. In the prediction,
// slack replaces this scratch.
//
//   batch 2   aten::convolution_backward   a   b       c        blocks born and freed within the op, in their order
//   batch 3   aten::convolution_backward   a   b   x   c        x is left out: without it all are on polynomials
//   batch 4   aten::convolution_backward   a   b   x   c

#include "ullage/predict/law.h"
#include "ullage/trace/take/take.h"

#include <cstddef>
#include <vector>

namespace ullage::predict {

// Marks the storages to leave out. First index: the take in the file; second: StorageId. `order` as in Sequence. Leaves
// nothing out of an op if that would be more bytes in some take than its varying_scratch().
std::vector<std::vector<bool>> varying_blocks(const trace::TraceFile& file, const Grid& grid,
                                              const std::vector<std::size_t>& order);

}  // namespace ullage::predict
