// SPDX-License-Identifier: Apache-2.0
#pragma once

// The largest value of each knob, and of both sides of a picture, with which the program fits so many bytes: by
// doubling, then by halving the rest.

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"

#include <optional>
#include <vector>

namespace ullage::predict {

// The other knob stays as it is in `at`. Looked at are values from the smallest take on, as far from each other as the
// takes are: of a side of 32, 48, 64 nothing is known at 50.
std::vector<LargestThatFits> largest_that_fits(const trace::TraceFile& file, const Sequence& sequence,
                                               const std::vector<Knob>& at, Bytes memory);

// All knobs that the program names as sides have one value. None: it names none, or the takes say nothing of squares (a
// side was left as it is, or the sides were tried at values that do not meet).
std::optional<LargestSquare> largest_square(const trace::TraceFile& file, const Sequence& sequence,
                                            const std::vector<Knob>& at, Bytes memory);

}  // namespace ullage::predict
