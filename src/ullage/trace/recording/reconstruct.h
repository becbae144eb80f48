// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a Trace of one device from what its allocator recorded. If the oldest events were lost, the state before the
// first event is worked out from the rest. Storages that existed before are the blocks at the end that no event
// allocates, and whatever is freed without an allocation. The bytes that the pool held before are those of the segments
// at the end, minus what the events add.

#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

namespace ullage::trace {

// Never fails. A contradiction (a block that is freed twice, a level below zero) gets a line in Trace::inconsistencies,
// mostly with the event's number. The reconstruction then goes on as well as it can.
Trace reconstruct(const DeviceRecording& recorded, const Recording& all);

}  // namespace ullage::trace
