// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ullage's own traces in the form of a snapshot of PyTorch's allocator, for viewers that know only those.

#include "ullage/trace/input.h"

namespace ullage::report {

// A device for each take, in one segment each. A trace has no addresses: storages get some of a space in which nothing
// overlaps, so levels and owners are the trace's and where blocks lie is not. Frames are op, layer or node, phase and
// category. A storage too large for the space of addresses (a damaged file) is left out.
trace::Recording recording_of(const trace::UnderstoodFile& file);

}  // namespace ullage::report
