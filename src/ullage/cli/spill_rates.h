// SPDX-License-Identifier: Apache-2.0
#pragma once

// How fast bytes go to the place where tensors are spilled, and come back.

#include "ullage/base/result.h"
#include "ullage/plan/model/plan.h"
#include "ullage/store/spill_folder.h"

namespace ullage::cli {

// By a short copy through the same file that a run spills to; it takes about a fifth of a second, less on a fast disk.
// An error where the folder cannot be written.
Result<plan::Rates> measure_rates(const store::SpillPlace& place);

}  // namespace ullage::cli
