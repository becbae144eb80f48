// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/rarest_call.h"

#include "ullage/base/check.h"

#include <algorithm>
#include <utility>

namespace ullage::trace {

std::size_t rarest_call(std::span<const std::uint64_t> counts) {
  ULLAGE_CHECK(!counts.empty(), "no optimizer to choose from");
  const bool any_repeats = std::ranges::any_of(counts, [](std::uint64_t count) { return count > 1; });
  const auto rank = [&](std::uint64_t count) { return std::pair(any_repeats && count < 2, count); };
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (rank(counts[i]) <= rank(counts[chosen])) chosen = i;
  }
  return chosen;
}

}  // namespace ullage::trace
