// SPDX-License-Identifier: Apache-2.0
#pragma once

// The other processes that share the budget: what this one started, and those that share pages with it. A process alone
// has no tree.

#include "ullage/base/bytes.h"

namespace ullage::store {

class Tree {
 public:
  virtual ~Tree() = default;

  // Resident bytes of the others, pages that are shared counted once, leases included; an estimate from above.
  virtual Bytes others() = 0;
  // The part of it that is expected and not there yet: a request that is refused is so only after it has come or not.
  virtual Bytes expected() = 0;
  // Has them counted anew. False: they were not, or there are none.
  virtual bool count() = 0;

  // This process is about to take bytes: the others see them from now on, before it has looked whether there is room.
  virtual void lease(Bytes bytes) = 0;
  // It took `taken` of them.
  virtual void end_lease(Bytes leased, Bytes taken) = 0;

  // This process forked, or was made by fork, a moment ago: it and the other now copy what they write of each other's
  // pages, and the copies do not show in what either holds.
  virtual void forked() = 0;
  // Bytes that this process and its fork's children shared and no longer do: one has written them or given them up, so
  // that the other's are now more.
  virtual void diverged(Bytes bytes) = 0;
};

}  // namespace ullage::store
