// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts our own traces into snapshots of PyTorch's allocator, for viewers that read only those.

#include "ullage/trace/input.h"

namespace ullage::report {

// Returns a recording with a device for each take; each device has one segment, or none if it held nothing. A trace has
// no addresses, so storages get addresses that do not overlap. So levels and owners are real, the places of blocks are
// not. Frames are op, layer or node, phase and category. Only allocations, frees and refused requests become events. A
// storage for which the 256 TiB of addresses do not suffice (in a damaged file) is left out.
trace::Recording recording_of(const trace::UnderstoodFile& file);

}  // namespace ullage::report
