// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a memory snapshot. The result must be a recording or an Error, in bounded time and memory.

#include "ullage/read/snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ullage::read::read_snapshot(std::as_bytes(std::span(data, size)), "fuzz");
  return 0;
}
