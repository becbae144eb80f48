// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/c_api.h"

#include "ullage/runtime/runtime.h"

int ullage_active() { return ullage::runtime::active() ? 1 : 0; }

void ullage_memory_status(ullage_memory* out) {
  if (out == nullptr) return;
  const ullage::runtime::MemoryStatus now = ullage::runtime::memory_status();
  *out = {now.budget.count, now.resident.count, now.live.count};
}

void ullage_mark_step() { ullage::runtime::mark_step(); }
