// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the calls of a card's driver that change which pages are mapped. Each of them costs time on a card. A plan's
// moves need some; a step in which nothing moves should need none.

#include <array>
#include <cstddef>
#include <cstdint>

namespace ullage::store {

// cuMemCreate, cuMemMap, cuMemSetAccess, cuMemUnmap, cuMemRelease. Pages are created, mapped and released one by one;
// access is given to a range, and a range is unmapped, in one call.
enum class DriverCall : std::size_t { Create, Map, Allow, Unmap, Release };
inline constexpr std::size_t kDriverCalls = 5;
inline constexpr std::array<const char*, kDriverCalls> kDriverCallNames = {"create", "map", "allow", "unmap",
                                                                           "release"};

using DriverCalls = std::array<std::uint64_t, kDriverCalls>;  // by DriverCall

inline std::uint64_t sum_of(const DriverCalls& calls) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : calls) sum += count;
  return sum;
}

}  // namespace ullage::store
