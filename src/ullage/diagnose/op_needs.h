// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many bytes one op needs at once: no pager can do with fewer. An op within another is a part of it.

#include "ullage/diagnose/take_facts.h"

namespace ullage::diagnose {

// Of all ops that cannot be cut: a list op (`_foreach_`, `_fused_`) is run slice by slice where a budget asks for it.
// None: no op was recorded.
std::optional<Need> largest_need(const trace::Take& take);

// Of the op that was in flight at an out-of-memory event, what it asked for included.
std::optional<Need> need_of_failed(const trace::Take& take, EventId event);

}  // namespace ullage::diagnose
