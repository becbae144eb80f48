// SPDX-License-Identifier: Apache-2.0
#pragma once

// Removes ops that a kernel's worker threads run during its own op, such as at::empty for a buffer of each thread.
// Their order changes from run to run, because it depends on which thread comes first.
//
//   thread 1   OpBegin attention ........... born x  died x ..... OpEnd attention
//   thread 2                     [OpBegin empty  born y  OpEnd] died y

#include "ullage/trace/take/take.h"

#include <optional>

namespace ullage::predict {

// Returns the takes without such ops; their storages then count as made by threads without an op. Nothing if no take
// has such ops.
std::optional<trace::TraceFile> without_worker_ops(const trace::TraceFile& file);

}  // namespace ullage::predict
