// SPDX-License-Identifier: Apache-2.0
#pragma once

// The settings of PyTorch's CUDA caching allocator (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF) that decide where
// bytes go. Sources: c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::sim {

// Which of several free blocks of equal size is taken, by version of torch.
enum class Ties {
  LowestAddress,  // up to 2.11
  OldestBlock,    // 2.12
  OldestSegment,  // 2.13 and later
};

struct CachingSettings {
  std::optional<Bytes> max_split;                            // none: blocks of any size are split
  std::optional<Bytes> max_non_split_rounding;               // none: large_segment
  std::array<std::uint64_t, 16> roundup_power2_divisions{};  // [0]: below 2 MiB, ... [15]: from 32 GiB; 0: off
  double garbage_collection_threshold = 0;                   // share of the limit; 0, or no limit: off
  double memory_fraction = 1;                                // share of the device; 1: no limit
  bool expandable_segments = false;
  Bytes large_segment = 20_MiB;
  Ties ties = Ties::OldestSegment;
  // The fate of a new address range of an expandable segment if the request does not fit into it. True: it stays,
  // unused. False: it is given back, as torch does from 2.15 on.
  bool keeps_ranges_too_small = true;

  static constexpr Bytes kUnit = 512_B;   // block sizes are multiples of this
  static constexpr Bytes kSmall = 1_MiB;  // blocks up to this size belong to the small pool
  static constexpr bool is_small(Bytes block) { return block <= kSmall; }
  // The size of the block for a request of less than 2^60 bytes, and of the segment that is taken for a block.
  Bytes block_for(Bytes request) const;
  Bytes segment_for(Bytes block) const;

  // Parses "expandable_segments:True,max_split_size_mb:128". Keys that do not change where this model puts bytes are
  // accepted and have no effect. `backend` is one, although cudaMallocAsync, which it may name, is not modelled. An
  // unknown key, or a value that torch refuses for another key, is BadArgument with a message that names it.
  static Result<CachingSettings> parse(std::string_view text);
};

}  // namespace ullage::sim
