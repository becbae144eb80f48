// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recording for other people's viewers.

#include "ullage/base/result.h"
#include "ullage/trace/input.h"

#include <iosfwd>

namespace ullage::report {

// The pickle that torch.cuda._memory_viz and pytorch.org/memory_viz read (layout D, protocol 4).
void write_memory_viz(const trace::Recording& recording, std::ostream& out);
// Of a snapshot as above; of a trace what recording_of() makes of it (take_recording.h). BadArgument for a log and a
// profile.
Status write_memory_viz(const trace::Input& input, std::ostream& out);

// Chrome's JSON trace event format, which Perfetto reads: counters of live and reserved bytes, one slice a storage that
// is among the largest, annotations as slices; of a trace also its ops, a row for each thread. BadArgument for a log:
// it has no history to draw.
Status write_perfetto(const trace::Input& input, std::ostream& out);

}  // namespace ullage::report
