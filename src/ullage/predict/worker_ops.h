// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ops that a kernel's worker threads run while its own op is running: at::empty for a buffer of each thread. Which
// thread comes first, and so which op, changes from run to run.
//
//   thread 1   OpBegin attention ........... born x  died x ..... OpEnd attention
//   thread 2                     [OpBegin empty  born y  OpEnd] died y

#include "ullage/trace/take/take.h"

#include <optional>

namespace ullage::predict {

// The takes without such ops; what they made was made by threads without an op. None: no take has any.
std::optional<trace::TraceFile> without_worker_ops(const trace::TraceFile& file);

}  // namespace ullage::predict
