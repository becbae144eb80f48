// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/budgeted_device.h"

#include "ullage/runtime/pool/pool.h"
#include "ullage/runtime/python/python_process.h"
#include "ullage/store/budget.h"
#include "ullage/store/process_memory.h"

#include <utility>

namespace ullage::runtime {

Bytes ProcessMemory::held() { return store::resident_now(); }

Bytes ProcessMemory::held_peak() { return store::resident_peak(); }

Bytes ProcessMemory::warm_up() const {
  using store::Budget;
  if (!in_python()) return Budget::kWarmUp;
  return compiler_is_deferred() ? Budget::kWarmUpInPython : Budget::kWarmUpInPython + Budget::kCompiler;
}

Result<store::Tier*> ProcessMemory::open_tier(const store::SpillPlace& place) {
  if (place.most == Bytes{}) return static_cast<store::Tier*>(nullptr);
  ULLAGE_TRY_VALUE(spill_, store::SpillFile::open(place, {}));
  return static_cast<store::Tier*>(spill_.get());
}

void ProcessMemory::install(Pool& pool) { pool.install(); }

// Gives back idle pages, to make room for the 7 to 10 MiB of code that libraries run as they end.
void ProcessMemory::ended(store::Pager& pager) { pager.drop_idle(); }

}  // namespace ullage::runtime
