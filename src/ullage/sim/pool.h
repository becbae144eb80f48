// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ullage's own pool as a model: `store::Store` with no memory behind it, so that simulated and real figures are the
// same code. It is asked for what a trace asked for, in its order.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/trace.h"

namespace ullage::sim {

struct PoolPeaks {
  Bytes live;      // bytes asked for
  Bytes resident;  // taken from the system
};

// With no limit. Storages from before the trace are placed first, in their order.
PoolPeaks run_pool(const trace::Trace& trace);

}  // namespace ullage::sim
