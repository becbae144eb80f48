// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a trace through Ullage's own pool, with no real memory. This is the real `store::Store`, so simulated and real
// figures come from the same code.

#include "ullage/base/bytes.h"
#include "ullage/trace/recording/trace.h"

namespace ullage::sim {

struct PoolPeaks {
  Bytes live;      // as requested
  Bytes resident;  // pages taken from the system
};

// Makes the trace's allocations and frees in order, without a limit. Storages from before the trace are placed first.
// If the pool has no addresses left for a storage (it has 2^46 bytes of them), its requested bytes count in both peaks.
PoolPeaks run_pool(const trace::Trace& trace);

}  // namespace ullage::sim
