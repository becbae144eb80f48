// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pager's record of one storage: where its bytes are, and how it is used. Edit distance() to change which storages
// are evicted first.
//
//              write out, take the pages           fill pages elsewhere, move them in
//   Resident ------------------------> Spilled -----------------------> Returning --> Resident and clean
//
//              take the pages             recomputed in another storage, whose pages are moved in
//   Resident ----------------> Dropped ------------------------------------------------> Resident
//
// While its slot is read over another storage (Pager::copy_storage()), a spilled storage is Returning too, and then
// Spilled again.
//
// A resident storage with a slot is clean: the slot holds the same bytes, and the pages are read-only so that the first
// write is noticed. At that write the slot is given up and the pages become writable again.
//
// A pinned storage is evicted only to make room for a page fault, because a fault cannot be refused. It may be any
// thread's fault, at any storage.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"
#include "ullage/store/spill_file.h"
#include "ullage/store/use_history.h"

#include <cstdint>
#include <map>
#include <optional>
#include <thread>

namespace ullage::store {

enum class Where { Resident, Spilled, Returning, Dropped };

// When it was used: what distance() goes by.
struct Uses {
  std::uint32_t saves = 0;  // how many times autograd has it saved at present
  OpId saved_at;            // when the first of these saves came
  OpId used_at;             // the last op that read or made it
  UseId last_use;
};

struct Pageable : Uses {
  StorageId id;  // never used twice, unlike the address
  Bytes size;    // asked for
  Bytes span;    // whole pages
  Where where = Where::Resident;
  std::optional<SpillSlot> slot;   // a copy of its bytes
  std::optional<Address> staged;   // if it is spilled: pages that it is to be read into
  std::thread::id recomputing_on;  // if it is dropped: the thread that recomputes it; none: the default id
  bool writing = false;            // it is being written out (its pages are read-only), or another is read over it
  bool changed = false;            // the program wrote to it while it was written out: that copy is worthless
  bool unchanged = false;          // it came back from its slot and was not written since: its eviction saves a write
  bool shared = false;             // its pages are shared with a forked process: a write copies them
  bool inherited = false;          // in a child made by fork: its parent's, and not used here yet
  std::uint32_t pins = 0;          // one per running op that uses or made it, one while not `met`, one if `captured`
  bool met = true;                 // false: no op used or made it yet (Pager::Settings::libraries_take_blocks)
  bool captured = false;           // a captured graph uses it: it stays pinned for good
  std::uint64_t ops = 0;           // how many ops that have it as an input began so far
  std::uint64_t adopted = 0;       // how often it got the pages of another storage, in which it was recomputed
  // Which page fault brought it back last, counted from 1 over all storages (PagerCounts). 0: an op brought it back, or
  // it never left.
  std::uint64_t healed = 0;

  bool clean() const { return where == Where::Resident && slot.has_value(); }
  bool recomputing() const { return recomputing_on != std::thread::id{}; }
  bool read_only() const { return clean() || writing; }
  // Did one of the last `window` faults bring it back? `faults`: how many there were so far.
  bool healed_lately(std::uint64_t faults, std::uint64_t window) const {
    return healed != 0 && healed + window > faults;
  }
};

// By address. Nodes are stable, so a reference stays valid until its storage is freed.
using Pageables = std::map<Address, Pageable>;

// Estimates in how many ops a storage, or a piece of a file (pager_core.h), is needed again. The farthest is evicted
// first.
//   1. If the history predicts its next use or its end (use_history.h) for an op to come: as many ops as predicted.
//   2. Else, if autograd has saved it: the longer ago, the farther, because backward is forward's mirror image.
//   3. Else, if it was used a few ops ago: soon again.
//   4. Else: far away. Of these, the most recently used is the farthest, because programs go round in circles.
std::uint64_t distance(const Uses& uses, const UseHistory& history);

}  // namespace ullage::store
