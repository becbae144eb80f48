// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts an input into files for other people's viewers.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <iosfwd>

namespace ullage::report {

// Writes the pickle that torch.cuda._memory_viz and pytorch.org/memory_viz read (trace::SnapshotLayout::D, pickle
// protocol 4).
void write_memory_viz(const trace::Recording& recording, std::ostream& out);
// Writes a snapshot as above, and a trace as recording_of() converts it (take_recording.h). BadArgument for a log or a
// profile.
Status write_memory_viz(const trace::Input& input, std::ostream& out);

// Writes Chrome's JSON trace event format, which Perfetto reads. It has counters of live and reserved bytes, and a
// slice for each of the 2000 largest storages of a device. Refused requests are instants. If the file has times,
// annotations are slices. Otherwise the axis counts events, and annotations are left out. A trace has no reserved
// bytes. It has its ops as slices, in a row for each thread, and the activations that autograd saves as instants.
// BadArgument for a log, which has no history.
Status write_perfetto(const trace::Input& input, std::ostream& out);

}  // namespace ullage::report
