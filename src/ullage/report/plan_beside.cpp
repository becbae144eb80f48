// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/plan_beside.h"

#include "ullage/plan/room.h"

namespace ullage::report {
namespace {

// Of a pool's limit, what a plan may fill with pages.
Bytes filled(Bytes limit) { return saturating_sub(limit, plan::kept_back(limit)); }

// The least limit of which `pages` may be filled. One more byte of limit is at most one more to be filled: so it is
// never passed by.
Bytes limit_for(Bytes pages) {
  Bytes limit = pages;
  while (filled(limit) < pages) limit += pages - filled(limit);
  return limit;
}

}  // namespace

Bytes BesideTensors::kept_free(Bytes budget) const {
  const Bytes pages = budget + rounding;
  return limit_for(pages) - pages + plan::kOutsideAllowance;
}

Bytes BesideTensors::memory_for(Bytes budget) const { return budget + rounding + kept_free(budget) + outside + margin; }

Bytes BesideTensors::budget_of(Bytes memory) const {
  const Bytes limit = saturating_sub(memory, outside + margin + plan::kOutsideAllowance);
  return saturating_sub(filled(limit), rounding);
}

}  // namespace ullage::report
