// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of a process in parts: the bytes of tensors that a plan keeps to, and what there must be beside them.

#include "ullage/base/bytes.h"

namespace ullage::report {

struct BesideTensors {
  Bytes outside;   // of the process, not the pool's
  Bytes margin;    // store::Budget::kMargin
  Bytes rounding;  // whole pages and slabs behind the bytes asked for

  // What else a plan leaves free (plan/room.h), so that a run can follow it, for a budget.
  Bytes kept_free(Bytes budget) const;
  // The least memory in which a plan can have `budget` bytes of tensors: both, and all of the above.
  Bytes memory_for(Bytes budget) const;
  // The bytes of tensors for which there is room in `memory`; zero where there is none.
  Bytes budget_of(Bytes memory) const;
};

}  // namespace ullage::report
