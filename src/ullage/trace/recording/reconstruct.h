// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Trace of one device from what its allocator recorded. When the oldest events were lost, the state before the first
// one is worked out backwards from the blocks at the end: what is there at the end and was never allocated in the
// events was there before, and so was what is freed without an allocation seen. Start level = bytes of the blocks at
// the end minus the net of the events.

#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"

namespace ullage::trace {

// Never fails: what cannot be (a free of a block never seen, a level below zero) is said in `inconsistencies`, with the
// event's number, and counted as well as it can be.
Trace reconstruct(const DeviceRecording& recorded, const Recording& all);

}  // namespace ullage::trace
