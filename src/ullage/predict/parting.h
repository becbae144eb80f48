// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes that part, or a size that follows no law: is it a known threshold between them, and which sizes would do?

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"
#include "ullage/predict/thresholds.h"

#include <vector>

namespace ullage::predict {

// Of the ops that all takes have in common up to and with the one at `until` (of take 0), as far as their sizes follow
// a law. `sequence` needs no more than arrange() gives.
std::vector<Crossing> crossings_until(const trace::TraceFile& file, const Sequence& sequence, EventId until,
                                      const std::vector<Knob>& at);

// The difference in one line, and other sizes where they would help.
NotTold not_told(const trace::TraceFile& file, const Sequence& sequence, const Difference& difference,
                 const std::vector<Knob>& at);
NotTold not_told(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Crossing>& crossings,
                 const std::vector<Knob>& at);

}  // namespace ullage::predict
