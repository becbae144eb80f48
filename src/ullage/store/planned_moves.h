// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan may order of the pager. It is carried out word for word; all addresses are the begin of a storage.

#include "ullage/base/bytes.h"

namespace ullage::store {

// Whoever knows how the bytes of a storage were made: the pager asks it when dropped ones are needed.
class Recomputer {
 public:
  virtual ~Recomputer() = default;
  // The storage at `at` is needed now and no plan has brought it back: by an op, by backward, or (`at_fault`) by an
  // instruction that stands at it. True: it is resident now, through PlannedMoves::adopt(). Called on the thread that
  // needs it, with no lock held; may use the pager, and other dropped storages, which are recomputed first. One thread
  // at a time for one storage. What it throws counts as false, and says why.
  virtual bool recompute(Address at, bool at_fault) = 0;
};

class PlannedMoves {
 public:
  virtual ~PlannedMoves() = default;

  // Gives up the bytes of a storage, resident or spilled: they can be made again. False, and nothing done: not there,
  // too small to have pages of its own, in use by an op, or dropped already.
  virtual bool drop(Address at) = 0;
  // Writes out what changed since it came back, and gives its pages up. Waits until done. False: as drop(); or spilled
  // already; or it could not be written (PagerCounts::spill_failure).
  virtual bool spill(Address at) = 0;
  // The background writes it when it can, and reads it into pages that are taken now, if there is room. spill() and
  // Pager::bring_back() wait for that, or do it themselves where it has not begun. Changes after write_ahead() make its
  // copy worthless, no more.
  virtual void write_ahead(Address at) = 0;
  virtual void read_ahead(Address at) = 0;
  // The pages of `from` (brought back, where it had to make room) go behind `at`, which was dropped or spilled and is
  // of the same size. `at` is resident then; `from` has nothing left and is to be freed. False, and nothing done: not
  // so.
  virtual bool adopt(Address at, Address from) = 0;

  // Null: there is none (any more). Must outlive its use.
  virtual void set_recomputer(Recomputer* recomputer) = 0;
  // True: the background moves only what it is told to.
  virtual void follow_plan(bool on) = 0;
  // How many bytes asked for could be present at once: the limit less the most that slabs and the last pages of
  // storages wasted since watch_waste().
  virtual Bytes room() = 0;
  virtual void watch_waste() = 0;
};

}  // namespace ullage::store
