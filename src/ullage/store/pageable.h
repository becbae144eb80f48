// SPDX-License-Identifier: Apache-2.0
#pragma once

// One storage as the pager sees it: where its bytes are, and what is known of its uses.
//
//              write out, take the pages           fill pages elsewhere, move them in
//   Resident ------------------------> Spilled -----------------------> Returning --> Resident, read-only
//
//              take the pages             made again in another storage, whose pages are moved in
//   Resident ----------------> Dropped ------------------------------------------------> Resident
//
// A resident storage with a slot is clean: the slot holds the same bytes, and its pages are read-only so that the first
// write is noticed. Then the slot is given up and the pages are writable again.

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

struct Pageable {
  StorageId id;  // never used twice, unlike the address
  Bytes size;    // asked for
  Bytes span;    // whole pages
  Where where = Where::Resident;
  std::optional<SpillSlot> slot;   // a copy of its bytes
  std::optional<Address> staged;   // while it is spilled: pages that it is to be read into
  std::thread::id recomputing_on;  // while it is dropped: the thread that makes it again; none: the default id
  bool writing = false;            // being written out; its pages are read-only meanwhile
  bool changed = false;            // while it was written out: the copy is worthless
  bool unchanged = false;          // since it was brought back: what it was brought back from still holds
  bool shared = false;             // with children of a fork: what is written from here on is a copy of what they have
  std::uint32_t pins = 0;          // by ops in flight; pinned ones are not spilled
  bool met = true;                 // false: no op was told to have it yet, and it is pinned until one is
  bool captured = false;           // used by work that is run again unseen: pinned for good
  std::uint32_t saves = 0;         // how often autograd holds it
  OpId saved_at;                   // the first of these
  OpId used_at;                    // the last op that read or made it
  UseId last_use;
  std::uint64_t adopted = 0;  // how often pages were handed over to it
  std::uint64_t healed = 0;   // number of the fault that brought it back last; 0: an op did, or it never left

  bool clean() const { return where == Where::Resident && slot.has_value(); }
  bool recomputing() const { return recomputing_on != std::thread::id{}; }
  bool read_only() const { return clean() || writing; }
  // Was it brought back by one of the last `window` of `faults` faults?
  bool healed_lately(std::uint64_t faults, std::uint64_t window) const {
    return healed != 0 && healed + window > faults;
  }
};

// By address. Nodes are stable, so a reference holds until its storage is freed.
using Pageables = std::map<Address, Pageable>;

// In how many ops the storage will be needed again, as well as that can be told; larger is farther.
//   1. what its twin met (use_history.h);
//   2. else, saved by autograd: backward is forward's mirror image, so the longer ago the farther;
//   3. else, used a few ops ago: soon again;
//   4. else far away, and of these the one used last is the farthest, since programs go round in circles.
std::uint64_t distance(const Pageable& storage, const UseHistory& history);

}  // namespace ullage::store
