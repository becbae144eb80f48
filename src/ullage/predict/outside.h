// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a process holds beside the pool, from what it held at the sizes tried.

#include "ullage/predict/figures.h"
#include "ullage/predict/sequence.h"

#include <vector>

namespace ullage::predict {

// Without what the program told. One figure for all sizes, the largest that was seen, unless it rises from each value
// of a knob to the next, by more than chance would have it: then as steeply as it ever did.
Outside outside_at(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs,
                   const trace::Take& evaluated);

// As it was in one take.
Outside outside_of(const trace::Take& take);

}  // namespace ullage::predict
