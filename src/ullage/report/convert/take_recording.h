// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts our own traces into snapshots of PyTorch's allocator, for viewers that read only those.

#include "ullage/trace/input.h"

namespace ullage::report {

// Returns a recording with a device for each take; each device has one segment. A trace has no addresses, so storages
// get addresses that do not overlap. So levels and owners are real, the places of blocks are not. Frames are op, layer
// or node, phase and category. A storage for which there are no addresses (in a damaged file) is left out.
trace::Recording recording_of(const trace::UnderstoodFile& file);

}  // namespace ullage::report
