// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes of the size of a whole picture, mapped and not malloc'ed: the system has them back the moment the buffer dies.

#include "ullage/base/bytes.h"

#include <cstdint>

namespace ullage::image {

class BigBuffer final {
 public:
  // Zeros. Throws std::bad_alloc when the system has no room; `size` is above zero.
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
