// SPDX-License-Identifier: Apache-2.0
#pragma once

// The moves that a plan may order from the pager. The pager makes each move as ordered, or not at all; it chooses no
// other storage instead. Each address is the begin of a storage.

#include "ullage/base/bytes.h"

namespace ullage::store {

// Knows how the bytes of storages were made. The pager calls it when a dropped storage is needed.
class Recomputer {
 public:
  virtual ~Recomputer() = default;
  // Recomputes the storage at `at`, which is needed before the plan has recomputed it. An op needs it, or the backward
  // pass, or (`at_fault`) an instruction that faulted. True: the storage's bytes came back through
  // PlannedMoves::adopt(). Called on the thread that needs the storage, with no lock held, and by one thread at a time
  // for each storage. It may use the pager and other dropped storages, which are recomputed first. If it throws, that
  // counts as false, and the exception says why.
  virtual bool recompute(Address at, bool at_fault) = 0;
};

class PlannedMoves {
 public:
  virtual ~PlannedMoves() = default;

  // Gives up the bytes of a storage, resident or spilled, because they can be recomputed. Returns false and does
  // nothing if no storage with pages of its own is there, or if it is pinned or dropped already. The same holds during
  // a capture and in a forked child.
  virtual bool drop(Address at) = 0;
  // Spills a storage: writes it out unless it is clean, gives up its pages, and returns when that is done. Returns
  // false if it is not resident, is pinned, or cannot be written (PagerCounts::spill_failure), and during a capture.
  virtual bool spill(Address at) = 0;
  // Orders the background thread to write a storage out, or to read it back into pages that are taken now. Without room
  // for these pages, read_ahead() does nothing. spill() and Pager::bring_back() wait for the copy, or make it
  // themselves if it has not begun. A write to the storage after write_ahead() only makes its copy worthless.
  virtual void write_ahead(Address at) = 0;
  virtual void read_ahead(Address at) = 0;
  // Moves the pages of `from` to `at`, which is dropped or spilled and has the same size. If `from` was spilled
  // meanwhile, brings it back first. Then `at` is resident; `from` has no pages left, and the caller frees it. Returns
  // false and moves no pages if one of these conditions does not hold, or if `from` cannot be brought back.
  virtual bool adopt(Address at, Address from) = 0;

  // Null: nothing can be recomputed from now on. `recomputer` must outlive its use.
  virtual void set_recomputer(Recomputer* recomputer) = 0;
  // True: the background thread makes only the copies that are ordered.
  virtual void follow_plan(bool on) = 0;
  // Returns how many requested bytes could be resident at once: the limit less the most that was wasted since
  // watch_waste(). Slabs and the last pages of storages waste bytes.
  virtual Bytes room() = 0;
  virtual void watch_waste() = 0;
};

}  // namespace ullage::store
