// SPDX-License-Identifier: Apache-2.0
#pragma once

// Searches for the largest value of each knob, and of both sides of a square picture, with which the program fits into
// `memory` bytes. The search doubles the value while it fits, then bisects. At last it tries the next two values, which
// may need less if a kernel takes another path there. A value for which the takes do not suffice counts as one that
// does not fit.

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"

#include <optional>
#include <vector>

namespace ullage::predict {

// One result for each knob; the other knob stays as in `at`. Tries values from the smallest take on, in steps of the
// greatest common divisor of the distances between the takes. With sides of 32, 48 and 64 it tries multiples of 16,
// because nothing is known at 50.
std::vector<LargestThatFits> largest_that_fits(const trace::TraceFile& file, const Sequence& sequence,
                                               const std::vector<Knob>& at, Bytes memory);

// Gives all knobs that the program names as sides the same value. Nothing if the program names no sides, a side was not
// varied, or the values tried for the sides do not have the same steps.
std::optional<LargestSquare> largest_square(const trace::TraceFile& file, const Sequence& sequence,
                                            const std::vector<Knob>& at, Bytes memory);

}  // namespace ullage::predict
