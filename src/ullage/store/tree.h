// SPDX-License-Identifier: Apache-2.0
#pragma once

// The other processes that share the budget: those of the program's tree, some of which share pages with this one. A
// process that has the budget for itself has no Tree.

#include "ullage/base/bytes.h"

#include <cstdint>

namespace ullage::store {

// What the other processes hold.
struct Others {
  // An estimate from above of their resident bytes, `expected` and `guessed` included. Shared pages count once in the
  // whole tree.
  Bytes held{};
  // Not there yet: copies of pages after a fork, what the others lack, and room that is kept for programs. A request is
  // refused only after waiting for it.
  Bytes expected{};
  // May not be there: pages that nobody has counted since a process took them, and that the tree may have had already;
  // leases, because a garbage collection leases all that it might copy, and copies little of it; and what children
  // announced (make_way()), because their heaps may have the pages already.
  Bytes guessed{};
  // They would evict it before a request of this process is refused.
  Bytes movable{};
};

class Tree {
 public:
  virtual ~Tree() = default;

  virtual Others others() = 0;
  // Tells the others whether this process's pool is under pressure, so that its ops are followed. Returns whether any
  // pool of the tree is. Then all follow their ops, because movable() is known only so.
  virtual bool share_pressure(bool is_under_pressure) = 0;
  // Do all others that have a pool follow their ops?
  virtual bool others_are_followed() = 0;
  // Does a launcher count them? Else others() knows only what they say of themselves.
  virtual bool is_counted() = 0;
  // The part of others().held that children of this process hold only because it was in its pool at the fork. Had this
  // process evicted it before, they would not. Never more than that, but it may be less.
  virtual Bytes inherited() = 0;
  // The most that one program without a pool, such as a compiler, has held so far.
  virtual Bytes largest_program() = 0;
  // Do others take memory now that no pool can evict, and may they give it back soon? These are programs without a pool
  // that grow, processes that load their libraries among them, and a process that has its turn (store::make_way()).
  virtual bool others_grow() = 0;
  // How many of the others there are now.
  virtual std::uint64_t processes() = 0;
  // Has them counted again and waits for that. Until then the others see that this process lacks `lacking` bytes, and
  // evict what they can; the count waits for their moves. False: they were not counted in time, or there are none.
  virtual bool count(Bytes lacking) = 0;

  // Announces that this process is about to take `bytes`. The others see them at once, before this process has looked
  // whether there is room.
  virtual void lease(Bytes bytes) = 0;
  // Ends a lease: the process took `taken` of the `leased` bytes.
  virtual void end_lease(Bytes leased, Bytes taken) = 0;
  // Call this before this process touches `bytes` outside its pool, and after the pool has given way. The others see
  // them at once. If there is no room for them, waits until the pools of the others give way, and for its turn
  // (store::make_way()): some seconds at most. Takes no lock, because in a child made by fork a lost thread of the
  // parent may hold it. No effect without a launcher. False, only if the request `may_fail`: the tree would pass its
  // budget for certain, and the block is store::kTakenAnew or larger. Pools may give more later, when ops that run now
  // have ended.
  virtual bool make_way(Bytes bytes, bool may_fail) = 0;
  // Notes that such a block is refused.
  virtual void refused(Bytes bytes) = 0;
  // Forgets what the others announced by make_way(), before a request is refused because of it.
  virtual void forget_announced() = 0;

  // Call this just before a fork. `followed`: the child's ops will be followed, so it tells what it uses of this
  // process's storages. False: inherited() stays zero until the next fork.
  virtual void forking(bool followed) = 0;
  // Call this in the parent just after a fork. Parent and child now copy the shared pages that they write to, and these
  // copies do not show in the resident bytes of either.
  virtual void forked() = 0;
  // Call this when this process writes or gives up `bytes` of pages that it shared with its forked children. They
  // counted once, as this process's, and now count as the others' too: the others' resident bytes grow by as many.
  virtual void diverged(Bytes bytes) = 0;
  // Call copying() before diverged() if an op that begins will write these bytes, and copied() when it has ended. A
  // count of pages in between shows only some of the copies, so the bytes count in addition to it.
  virtual void copying(Bytes bytes) = 0;
  virtual void copied(Bytes bytes) = 0;
  // Call this before, if they are a storage's: the children will hold them alone (inherited()).
  virtual void left_to_children(Bytes bytes) = 0;
  // Call this in a child made by fork when it first uses `bytes` of its parent's storages. It would hold them too if
  // its parent had evicted them before the fork.
  virtual void used_inherited(Bytes bytes) = 0;
};

}  // namespace ullage::store
