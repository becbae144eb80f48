// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns one device's memory events into a Trace. Allocations and frees become storages. The events of newer torch
// versions state a total ("Total Allocated"), which shows how much was live before the first event.

#include "ullage/read/profile/profile_events.h"
#include "ullage/read/profile/profile_stacks.h"
#include "ullage/trace/input.h"

#include <span>
#include <vector>

namespace ullage::read {

// `memory` has the indices in events.memory of one device's events (at least one), sorted by time. Never fails: events
// that contradict each other are listed in trace.inconsistencies. The trace has the innermost op that ran at each of
// these events, and the ops that enclose it. Other ops are left out.
trace::Profile::Device make_device(const ProfileEvents& events, const OpenSpans& open,
                                   std::span<const std::uint32_t> memory);

// Returns the high-water mark of live bytes, with those that were live before the first event.
Bytes peak(const trace::Trace& trace);

}  // namespace ullage::read
