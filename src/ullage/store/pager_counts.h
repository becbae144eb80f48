// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the pager did so far, and what is away now.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <string>

namespace ullage::store {

// Bytes are those of whole pages.
struct PagerCounts {
  Bytes spilled;           // bytes moved out: pages taken away
  Bytes rewrites_avoided;  // of these, not written again, since they had not changed since they came back
  Bytes written;           // to the file
  Bytes written_ahead;     // of these, by the background thread
  Bytes restored;          // bytes moved back
  Bytes restored_ahead;    // of these, by the background thread
  Bytes spilled_now;
  Bytes spilled_peak;
  Bytes dropped;                        // bytes given up unwritten, to be made again
  Bytes dropped_now;                    // of storages that live, those that were handed over to another included
  Bytes at_once_peak;                   // the largest Shortage::at_once that was met: the floor of the pool
  Bytes foreign_peak;                   // most bytes of one op's inputs that are not the pool's
  Seconds waited;                       // program's threads, for moving, and for recomputing that no plan foresaw
  Seconds background;                   // time the background thread moved
  std::uint64_t faults = 0;             // accesses of storages without pages that no op announced
  std::uint64_t recomputed = 0;         // dropped storages that were needed before a plan had made them again
  std::uint64_t evicted_on_demand = 0;  // storages, because something else had no room; under a plan: rescues
  std::string spill_failure;            // why writing out failed last; empty: it did not, or went well since
};

}  // namespace ullage::store
