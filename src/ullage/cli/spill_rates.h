// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures how fast bytes are spilled and restored, for `ullage plan` without --rate. The planner takes these rates for
// the time of a copy. Edit this if a plan's copies take other times in a run.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"
#include "ullage/store/spill_folder.h"

#include <functional>

namespace ullage::cli {

// Writes pieces of 4 MiB to the same kind of file that a run spills to, for 0.1 s or up to 64 MiB. Then reads them for
// 0.1 s. At least one piece is written and read, however long that takes. If the folder fills up meanwhile, the rates
// are those of what was written. Returns an error if the folder has no room for one piece.
Result<plan::Rates> measure_rates(const store::SpillPlace& place);
// The same with a clock of the caller's, for tests. `now` returns seconds.
Result<plan::Rates> measure_rates(const store::SpillPlace& place, const std::function<double()>& now);

}  // namespace ullage::cli
