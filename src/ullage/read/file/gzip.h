// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompresses gzip data in memory, within limits: a file of a few kilobytes can claim to hold terabytes.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ullage::read {

// Profiler traces decompress to 20 to 50 times their size; the deflate format allows about 1000 times.
struct GzipLimits {
  Bytes largest = Bytes{2} * (1ull << 30);      // of the decompressed data
  std::uint64_t ratio = 250;                    // decompressed bytes for each byte of gzip, checked only ...
  Bytes ratio_from = Bytes{64} * (1ull << 20);  // ... once there are more than this: a small file may have any ratio
};

// Looks at the first two bytes only.
bool is_gzip(std::span<const std::byte> content);

// Decompresses all members, one after the other. Skips zeros after the last one (padding of tapes and blocks).
// BadFile with `name:offset` (in the gzip file) if the data is damaged, cut off, followed by something else, or over a
// limit.
Result<std::string> gunzip(std::span<const std::byte> content, const std::string& name, const GzipLimits& limits = {});

}  // namespace ullage::read
