// SPDX-License-Identifier: Apache-2.0

// Reads any bytes as a file: gzip, JSON or neither. The result must be a value or an Error, in bounded time and
// memory.

#include "ullage/read/input.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ullage::read::read_input(std::as_bytes(std::span(data, size)), "fuzz");
  return 0;
}
