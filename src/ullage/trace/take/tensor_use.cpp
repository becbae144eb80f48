// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/take/tensor_use.h"

#include <array>

namespace ullage::trace {
namespace {

constexpr std::uint64_t kMost = 1ull << 62;

// Bytes of one element of a c10::ScalarType; zero for a type that is not supported.
std::uint64_t element_size(std::uint8_t dtype) {
  constexpr std::array<std::uint8_t, 16> kSizes = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 0, 0, 0, 2};
  return dtype < kSizes.size() ? kSizes[dtype] : 0;
}

}  // namespace

Bytes bytes_of(const TensorUse& use) {
  std::uint64_t bytes = element_size(use.dtype);
  for (const std::int64_t size : use.sizes) {
    if (size <= 0 || bytes > kMost / static_cast<std::uint64_t>(size)) return {};
    bytes *= static_cast<std::uint64_t>(size);
  }
  return Bytes{bytes};
}

}  // namespace ullage::trace
