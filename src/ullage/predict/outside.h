// SPDX-License-Identifier: Apache-2.0
#pragma once

// Predicts the bytes that a process holds outside the pool from those that it held at the sizes tried.

#include "ullage/predict/figures.h"
#include "ullage/predict/sequence.h"

#include <vector>

namespace ullage::predict {

// Outside::program starts from the largest figure of all takes, without charges. The figure may rise with a knob. If
// each larger value of the knob raises it by more than the kernel's counting error, the steepest rise per unit is used.
// That rise is added for each unit above the largest value tried. If a rehearsal made the takes in one process, nothing
// is added, because there the figures rise as the process warms up. 3 MiB for chance come on top.
Outside outside_at(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Knob>& knobs,
                   const trace::Take& evaluated);

// The figures that one take measured, with the same 3 MiB for chance in `program`.
Outside outside_of(const trace::Take& take);

}  // namespace ullage::predict
