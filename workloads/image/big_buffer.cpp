// SPDX-License-Identifier: Apache-2.0
#include "image/big_buffer.h"

#include <sys/mman.h>

#include <new>

namespace ullage::image {

BigBuffer::BigBuffer(Bytes size) : begin_(nullptr), size_(size) {
  void* at = mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  // Without huge pages, no more becomes resident than was charged.
  madvise(at, size.count, MADV_NOHUGEPAGE);
  begin_ = static_cast<std::uint8_t*>(at);
}

BigBuffer::~BigBuffer() { munmap(begin_, size_.count); }

}  // namespace ullage::image
