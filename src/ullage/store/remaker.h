// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whoever knows how the bytes of a storage were made: the pager asks it when dropped ones are needed.

#include "ullage/base/bytes.h"

namespace ullage::store {

class Remaker {
 public:
  virtual ~Remaker() = default;
  // The storage at `at` is needed now and no plan has brought it back: by an op, by backward, or (`at_fault`) by an
  // instruction that stands at it. True: it is resident now, through Pager::adopt(). Called on the thread that needs
  // it, with no lock held; may use the pager, and other dropped storages, which are remade first. One thread at a time
  // for one storage. What it throws counts as false, and says why.
  virtual bool remake(Address at, bool at_fault) = 0;
};

}  // namespace ullage::store
