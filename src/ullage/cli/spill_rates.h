// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures how fast bytes are spilled and restored, for `ullage plan` without --rate. A plan is made for these rates.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"
#include "ullage/store/spill_folder.h"

#include <functional>

namespace ullage::cli {

// Writes and reads up to 64 MiB through the same kind of file that a run spills to. Takes about 0.2 s, less on a fast
// disk. If the folder fills up meanwhile, the rates are those of what was written. Returns an error if it has no room
// for 4 MiB.
Result<plan::Rates> measure_rates(const store::SpillPlace& place);
// `now` is the clock, in seconds.
Result<plan::Rates> measure_rates(const store::SpillPlace& place, const std::function<double()>& now);

}  // namespace ullage::cli
