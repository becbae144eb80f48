// SPDX-License-Identifier: Apache-2.0
#pragma once

// Says how many bytes must be resident at once for one op. No pager can do with fewer. What an op inside another one
// needs is counted for the outer one. Edit these files to change what an op's need counts; take_facts.h has the result.

#include "ullage/diagnose/take_facts.h"

namespace ullage::diagnose {

// Returns the largest need of all ops. Leaves out list ops (`_foreach_`, `_fused_`) and their slices, because Ullage
// runs a list op slice by slice if the budget requires it. None if no other op was recorded.
std::optional<Need> largest_need(const trace::Take& take);

// Returns the need of the op that was running at an out-of-memory event: its bytes just before the event, plus the
// refused bytes. List ops are not left out here. If several threads had an op running, an op that threw is chosen. None
// if no op was running.
std::optional<Need> need_of_failed(const trace::Take& take, EventId event);

}  // namespace ullage::diagnose
