// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gzip data in memory, unfolded within stated limits: a file of a few kilobytes can claim to hold terabytes.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ullage::read {

// Profiler traces unfold to 20 to 50 times their size; deflate allows about 1000.
struct GzipLimits {
  Bytes largest = Bytes{2} * (1ull << 30);      // of the unfolded data
  std::uint64_t ratio = 250;                    // unfolded bytes for each byte of gzip ...
  Bytes ratio_from = Bytes{64} * (1ull << 20);  // ... once this many are unfolded: a small file may have any ratio
};

// By the first two bytes.
bool is_gzip(std::span<const std::byte> content);

// The data of all members, one after the other; zeros after the last one (padding of tapes and blocks) are skipped.
// BadFile with `name:offset`, the offset in the gzip file: damaged, cut off, followed by something else, over a limit.
Result<std::string> gunzip(std::span<const std::byte> content, const std::string& name, const GzipLimits& limits = {});

}  // namespace ullage::read
