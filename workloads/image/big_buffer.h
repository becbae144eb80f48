// SPDX-License-Identifier: Apache-2.0
#pragma once

// A buffer for a whole picture. It is mapped and not malloc'ed, so its memory returns to the system as soon as it is
// destroyed.

#include "ullage/base/bytes.h"

#include <cstdint>

namespace ullage::image {

class BigBuffer final {
 public:
  // The bytes start as zeros. `size` must be above zero. Throws std::bad_alloc if the system has no memory.
  explicit BigBuffer(Bytes size);
  ~BigBuffer();
  BigBuffer(const BigBuffer&) = delete;
  BigBuffer& operator=(const BigBuffer&) = delete;

  std::uint8_t* at(Bytes offset) { return begin_ + offset.count; }

 private:
  std::uint8_t* begin_;
  Bytes size_;
};

}  // namespace ullage::image
