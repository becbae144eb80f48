// SPDX-License-Identifier: Apache-2.0
#pragma once

// Charges: bytes that a program takes outside the pool and reports, such as a decoder's buffers.

#include "ullage/predict/evaluation.h"

namespace ullage::predict {

// The most bytes that are charged at once.
Bytes charges_peak(const trace::Take& take);

// Sets the charges of `into` to those at the target. Returns true if each follows a law. Else they are a bound: after
// each charge the level is the largest that any take had there, scaled by the growth of the knobs. The growth of a knob
// is squared if two knobs vary, or if the takes have more than three values of it: the knob may then be a side or a
// length, and bytes grow with its square. If the bytes of the takes themselves grow faster than that, a higher power is
// taken, up to the third.
bool write_charges(const trace::TraceFile& file, const Sequence& sequence, Target& target, trace::Take& into);

}  // namespace ullage::predict
