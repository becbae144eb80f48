// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/recording/memory_summary.h"

#include <algorithm>

namespace ullage::trace {

const SummaryRow* MemorySummary::row(const std::string& name, const std::string& pool) const {
  const auto found = std::ranges::find_if(rows, [&](const auto& one) { return one.name == name && one.pool == pool; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace ullage::trace
