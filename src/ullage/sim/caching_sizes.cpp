// SPDX-License-Identifier: Apache-2.0
// Computes the size of the block for a request, and of the segment that is taken for a block, as torch does. Edit this
// if torch rounds sizes in another way.
#include "ullage/sim/caching_settings.h"

#include <algorithm>
#include <bit>

namespace ullage::sim {
namespace {

constexpr Bytes kSmallSegment = 2_MiB;  // a segment of the small pool
constexpr Bytes kOwnSegment = 10_MiB;   // blocks of this size or more get a segment of their own size
constexpr Bytes kSegmentUnit = 2_MiB;   // ... rounded up to a multiple of this
constexpr int kFirstInterval = 20;      // log2 of the first interval of roundup_power2_divisions

}  // namespace

Bytes CachingSettings::block_for(Bytes request) const {
  if (request <= kUnit) return kUnit;
  const int magnitude = std::bit_width(request.count) - 1;
  const int last = static_cast<int>(roundup_power2_divisions.size()) - 1;
  const auto interval = static_cast<std::size_t>(std::clamp(magnitude - kFirstInterval, 0, last));
  const std::uint64_t divisions = roundup_power2_divisions[interval];
  if (divisions <= 1 || request <= kUnit * divisions) return round_up(request, kUnit);
  return round_up(request, Bytes{1ull << magnitude} / std::bit_floor(divisions));
}

Bytes CachingSettings::segment_for(Bytes block) const {
  if (is_small(block)) return kSmallSegment;
  if (block < kOwnSegment) return large_segment;
  return round_up(block, kSegmentUnit);
}

}  // namespace ullage::sim
