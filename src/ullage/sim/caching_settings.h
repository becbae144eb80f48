// SPDX-License-Identifier: Apache-2.0
#pragma once

// The settings of PyTorch's CUDA caching allocator (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF) that decide where
// bytes go. Source: c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::sim {

// Which of several free blocks of one size is taken.
enum class Ties {
  LowestAddress,  // torch up to 2.11
  OldestBlock,    // 2.12
  OldestSegment,  // 2.13 and later
};

struct CachingSettings {
  std::optional<Bytes> max_split;                            // none: blocks of any size are split
  std::optional<Bytes> max_non_split_rounding;               // none: as large_segment
  std::array<std::uint64_t, 16> roundup_power2_divisions{};  // by interval, 1 MiB to 32 GiB and above; 0: off
  double garbage_collection_threshold = 0;                   // of the limit; 0: off
  double memory_fraction = 1;                                // of the device; 1: no limit
  bool expandable_segments = false;
  Bytes large_segment = 20_MiB;
  Ties ties = Ties::OldestSegment;
  // A request larger than a whole new range of addresses for an expandable segment: the range stays, unused; from 2.15
  // on it is given back.
  bool keeps_ranges_too_small = true;

  static constexpr Bytes kUnit = 512_B;   // blocks are multiples of it
  static constexpr Bytes kSmall = 1_MiB;  // blocks up to here are of the small pool
  static constexpr bool is_small(Bytes block) { return block <= kSmall; }
  // The size of the block for a request (below 2^60 bytes), and of the segment taken for a block.
  Bytes block_for(Bytes request) const;
  Bytes segment_for(Bytes block) const;

  // "expandable_segments:True,max_split_size_mb:128": keys that move no bytes are taken and have no effect. BadArgument
  // names an unknown key or a value that torch refuses.
  static Result<CachingSettings> parse(std::string_view text);
};

}  // namespace ullage::sim
