// SPDX-License-Identifier: Apache-2.0
#pragma once

// Explains why takes differ or a size follows no law: finds known thresholds between the takes and the target, and
// sizes that would do instead.

#include "ullage/predict/predict.h"
#include "ullage/predict/sequence.h"
#include "ullage/predict/thresholds.h"

#include <vector>

namespace ullage::predict {

// Returns the crossings of the ops that begin up to `until` (an event of take 0). Stops at the first op that not all
// takes have with equally many tensors of equal ranks. Ops with a size that follows no law cross nothing. `sequence`
// may come from arrange() or, if the takes are alike, from compare().
std::vector<Crossing> crossings_until(const trace::TraceFile& file, const Sequence& sequence, EventId until,
                                      const std::vector<Knob>& at);

// The first form says the difference in one line, with the last crossing before it as the likely reason. The second
// form says the first crossing. Both name other sizes if some would help.
NeedsTakes needs_takes(const trace::TraceFile& file, const Sequence& sequence, const Difference& difference,
                       const std::vector<Knob>& at);
NeedsTakes needs_takes(const trace::TraceFile& file, const Sequence& sequence, const std::vector<Crossing>& crossings,
                       const std::vector<Knob>& at);

}  // namespace ullage::predict
