// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a process holds outside the pool, predicted from what it held at the sizes tried.

#include "ullage/predict/figures.h"
#include "ullage/predict/sequence.h"

#include <vector>

namespace ullage::predict {

// `program` is the largest figure of all takes, without charges. It grows with a knob if the figures rise from each
// value of the knob to the next by more than the kernel's counting error; then by the steepest of these rises. It does
// not grow if a rehearsal made the takes in one process, because there the figures rise as the process warms up.
Outside outside_at(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs,
                   const trace::Take& evaluated);

// The figures of one take.
Outside outside_of(const trace::Take& take);

}  // namespace ullage::predict
