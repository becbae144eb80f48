// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a file of weights. The result must be tensors that lie within the file, or an Error, in bounded
// time and memory.

#include "ullage/read/weights/weights.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto weights = ullage::read::Weights::read(std::as_bytes(std::span(data, size)), "fuzz");
  if (!weights) return 0;
  for (const auto& one : weights.value().tensors()) {
    if (one.tensor.bytes().count > 1u << 16) continue;  // an expanded tensor is as large as the file says
    std::vector<std::byte> copy(one.tensor.bytes().count);
    one.tensor.copy_to(copy);
  }
  return 0;
}
