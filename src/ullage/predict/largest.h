// SPDX-License-Identifier: Apache-2.0
#pragma once

// The largest value of each knob with which the program fits so many bytes: by doubling, then by halving the rest.

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"

#include <vector>

namespace ullage::predict {

// The other knob stays as it is in `at`. Looked at are values from the smallest take on, as far from each other as the
// takes are: of a side of 32, 48, 64 nothing is known at 50.
std::vector<LargestThatFits> largest_that_fits(const trace::TraceFile& file, const Sequence& sequence,
                                               const std::vector<trace::Knob>& at, Bytes memory);

}  // namespace ullage::predict
