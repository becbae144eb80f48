// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which addresses the pool held when: segments over time, worked out from the events and from the segments at the end.

#include "ullage/report/html_timeline.h"

namespace ullage::report {

// What is there at the end, or given back, without having been taken in the events was there before the first one.
// Never fails: a range taken twice counts once.
std::vector<PlacedRange> reserved_ranges(const trace::Trace& trace, const trace::DeviceRecording& recorded);

}  // namespace ullage::report
