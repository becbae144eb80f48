// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads numbers as a pickle writes them: lengths and integers little-endian, floats big-endian.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ullage::read {

static_assert(std::endian::native == std::endian::little, "pickles are read with plain copies");

// `bytes` is at most 8. The caller has checked that they are there.
inline std::uint64_t little_endian(const std::byte* from, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  return value;
}

// The lowest `bytes` bytes of `value`, 0 to 8.
inline std::uint64_t low_bytes(std::uint64_t value, std::size_t bytes) {
  return bytes >= 8 ? value : value & ((std::uint64_t{1} << 8 * bytes) - 1);
}

inline double big_endian_double(const std::byte* from) {
  return std::bit_cast<double>(__builtin_bswap64(little_endian(from, 8)));
}

// Two's complement of `bytes` bytes, 1 to 8, as LONG1 holds it.
inline std::int64_t sign_extended(std::uint64_t value, std::size_t bytes) {
  const unsigned unused = unsigned(64 - 8 * bytes);
  return std::int64_t(value << unused) >> unused;
}

}  // namespace ullage::read
