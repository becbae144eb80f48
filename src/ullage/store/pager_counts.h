// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts of the pager's work so far, and of the storages that are evicted now.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <string>

namespace ullage::store {

// Bytes count whole pages, except those of `foreign_peak`.
struct PagerCounts {
  Bytes spilled;  // pages taken away, with a copy in the tier
  // The part of `spilled` that was not written again, because it had not changed since it came back.
  Bytes rewrites_avoided;
  Bytes written;         // to the tier
  Bytes written_ahead;   // of these, by the background thread
  Bytes restored;        // read back
  Bytes restored_ahead;  // of these, by the background thread
  Bytes spilled_now;
  Bytes spilled_peak;
  Bytes dropped;                 // given up unwritten, to be recomputed
  Bytes dropped_now;             // of live storages, including those whose pages another storage adopted
  Bytes at_once_peak;            // most that Pager::take_at_once() counts: a smaller pool would not have done
  Bytes foreign_peak;            // most bytes of one op's inputs that are neither the pool's nor a mapped file's
  Bytes files_there;             // pages of mapped files that are in memory now and can be let go
  Bytes files_at_once_peak;      // most that ops in flight read of mapped files
  Bytes files_let_go;            // pages of mapped files that were let go
  Seconds waited;                // by the program's threads, for moves and for recomputing on demand
  Seconds writing, reading;      // time of the copies to the tier and from it, on any thread
  Seconds background;            // time that the background thread spent on moves
  std::uint64_t faults = 0;      // accesses to evicted storages that no op announced
  std::uint64_t recomputed = 0;  // dropped storages that were needed before a plan had recomputed them
  // Storages that the pager evicted to make room: for another storage, because the limit sank, or before a fork. Under
  // a plan these are rescues.
  std::uint64_t evicted_on_demand = 0;
  std::string spill_failure;  // why writing out failed last; empty: it never failed, or has succeeded since
};

}  // namespace ullage::store
