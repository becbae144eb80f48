// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes must be resident at once for one op: no pager can do with fewer. An op inside another counts as a part
// of the outer one.

#include "ullage/diagnose/take_facts.h"

namespace ullage::diagnose {

// Returns the largest need of all ops. List ops (`_foreach_`, `_fused_`) and their slices are left out, because Ullage
// runs a list op slice by slice if the budget requires it. None if no other op was recorded.
std::optional<Need> largest_need(const trace::Take& take);

// Returns the need, up to an out-of-memory event, of the op in flight there, with the bytes that were refused. Of the
// ops of several threads, one that failed counts. None if no op was in flight.
std::optional<Need> need_of_failed(const trace::Take& take, EventId event);

}  // namespace ullage::diagnose
