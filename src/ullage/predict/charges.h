// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program takes outside the pool and tells: a decoder's buffers.

#include "ullage/predict/evaluation.h"

namespace ullage::predict {

// Most bytes at once.
Bytes charges_peak(const trace::Take& take);

// The charges of `into` as they are at the target. True: each follows its law. Else what is told at once is never below
// the largest level that a take had there, grown as fast as the knobs.
bool write_charges(const trace::TraceFile& file, const Sequence& sequence, Target& target, trace::Take& into);

}  // namespace ullage::predict
