// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random requests as programs make them. Sizes are of all magnitudes up to 256 MiB; many are repeated, and some are at
// the borders of the allocator's rules. There are several streams, blocks that other streams use, and now and then an
// emptied cache.

#include "ullage/sim/caching.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <random>
#include <variant>
#include <vector>

namespace ullage::sim {

class Workload final {
 public:
  // Keeps the live bytes near nine tenths of the device, or of 16 GiB if that is less. With one stream the cache is
  // never emptied.
  Workload(std::uint64_t seed, Bytes device, std::uint64_t streams = 3)
      : random_(seed), most_(std::min(device, 16_GiB) / 10 * 9), streams_(streams) {
    for (Bytes& size : shapes_) size = any_size();
  }

  void step(CachingAllocator& allocator) {
    const std::uint64_t draw = random_() % 1000;
    if (draw == 0 && streams_ > 1) return allocator.empty_cache();
    if (draw < 20 && !live_.empty()) {
      return allocator.record_stream(live_[random_() % live_.size()].block, StreamId{random_() % streams_});
    }
    if (!live_.empty() && random_() % 100 < (held_ < most_ ? 35u : 65u)) return free(allocator);
    const Bytes size = draw_size();
    const auto outcome = allocator.allocate(size, StreamId{random_() % streams_});
    const auto* allocation = std::get_if<Allocation>(&outcome);
    if (!allocation) return;
    live_.push_back({allocation->block, size});
    held_ += size;
  }

 private:
  struct Held {
    BlockId block;
    Bytes size;
  };

  Bytes any_size() {
    return Bytes{static_cast<std::uint64_t>(std::exp2(std::uniform_real_distribution<>(0, 28)(random_)))};
  }
  Bytes draw_size() {
    static constexpr std::uint64_t kBorders[] = {512,      513,      1 << 20,         (1 << 20) + 1,
                                                 2 << 20,  10 << 20, (10 << 20) - 1,  20 << 20,
                                                 64 << 20, 65 << 20, (64 << 20) - 512};
    if (random_() % 10 == 0) return Bytes{kBorders[random_() % std::size(kBorders)]};
    return random_() % 2 == 0 ? shapes_[random_() % std::size(shapes_)] : any_size();
  }
  void free(CachingAllocator& allocator) {
    const std::size_t at = random_() % 2 == 0 ? random_() % live_.size() : live_.size() - 1;
    allocator.free(live_[at].block);
    held_ -= live_[at].size;
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  std::mt19937_64 random_;
  Bytes most_;
  std::uint64_t streams_;
  Bytes shapes_[64];
  std::vector<Held> live_;
  Bytes held_;
};

}  // namespace ullage::sim
