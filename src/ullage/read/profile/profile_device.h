// SPDX-License-Identifier: Apache-2.0
#pragma once

// One device's memory events as a Trace: allocations and frees become storages, the totals that newer traces carry give
// the levels before the first event.

#include "ullage/read/profile/profile_events.h"
#include "ullage/read/profile/profile_stacks.h"
#include "ullage/trace/input.h"

#include <span>
#include <vector>

namespace ullage::read {

// `memory`: indices into events.memory of the events of one device (at least one), by time. Never fails: what cannot be
// is said in trace.inconsistencies. Ops are those that were open at some event of this device, with the ops around
// them.
trace::Profile::Device make_device(const ProfileEvents& events, const OpenSpans& open,
                                   std::span<const std::uint32_t> memory);

// What was most live at once.
Bytes peak(const trace::Trace& trace);

}  // namespace ullage::read
