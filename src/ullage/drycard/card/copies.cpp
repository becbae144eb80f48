// SPDX-License-Identifier: Apache-2.0
// Copies. Device memory has no content: what goes there is dropped, what comes from there is zeros, so nothing stale is
// ever read and no host memory stands behind a card. Between two places of the host a copy is a copy.

#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"

#include <cstring>

namespace ullage::drycard {
namespace {

void move(Address to, Address from, std::size_t bytes) {
  if (bytes == 0 || is_device(to)) return;
  if (is_device(from)) {
    std::memset(reinterpret_cast<void*>(to), 0, bytes);
  } else {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  }
}

void count_read(Address to, Address from, std::size_t bytes) {
  if (bytes == 0 || !is_device(from) || is_device(to)) return;
  ledger().reads.fetch_add(1, std::memory_order_relaxed);
  ledger().read_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

Error copy(Address to, Address from, std::size_t bytes, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes != 0 && (to == 0 || from == 0)) return kInvalidValue;
  count_read(to, from, bytes);
  move(to, from, bytes);
  note_work(stream, 0);
  return kSuccess;
}

Error copy(void* to, const void* from, std::size_t bytes, const void* stream = nullptr) {
  return copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream);
}

struct Plane {
  Address at;
  std::size_t pitch;
};

Error copy_2d(Plane to, Plane from, std::size_t width, std::size_t height, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  count_read(to.at, from.at, width * height);
  if (!is_device(to.at)) {
    for (std::size_t row = 0; row < height; ++row) move(to.at + row * to.pitch, from.at + row * from.pitch, width);
  }
  note_work(stream, 0);
  return kSuccess;
}

Error set(void* place, int value, std::size_t bytes, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes != 0 && !is_device(reinterpret_cast<Address>(place))) std::memset(place, value, bytes);
  note_work(stream, 0);
  return kSuccess;
}

// Words of two and four bytes, on the host too (managed and locked memory).
template <typename Word>
Error set_words(Address at, Word value, std::size_t count, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (!is_device(at)) {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(reinterpret_cast<void*>(at + i * sizeof value), &value, sizeof value);
  }
  note_work(stream, 0);
  return kSuccess;
}

// CUDA_MEMCPY2D, as far as it is read; the driver's memory types: 1 host, 2 device, 4 unified.
struct Copy2d {
  std::size_t from_x, from_y;
  int from_type;
  const void* from_host;
  Address from_device;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  int to_type;
  void* to_host;
  Address to_device;
  void* to_array;
  std::size_t to_pitch;
  std::size_t width, height;
};

Error copy_2d(const Copy2d& what, const void* stream) {
  constexpr int kHostType = 1;
  constexpr int kArrayType = 3;
  if (what.from_type == kArrayType || what.to_type == kArrayType) return kSuccess;
  const Address from = what.from_type == kHostType ? reinterpret_cast<Address>(what.from_host) : what.from_device;
  const Address to = what.to_type == kHostType ? reinterpret_cast<Address>(what.to_host) : what.to_device;
  return copy_2d({to + what.to_y * what.to_pitch + what.to_x, what.to_pitch},
                 {from + what.from_y * what.from_pitch + what.from_x, what.from_pitch}, what.width, what.height,
                 stream);
}

Plane plane(const void* at, std::size_t pitch) { return {reinterpret_cast<Address>(at), pitch}; }

// A variable of a module has an address on the card and no content.
Error read_symbol(void* to, std::size_t bytes) {
  if (is_device(reinterpret_cast<Address>(to))) return kSuccess;
  std::memset(to, 0, bytes);
  ledger().reads.fetch_add(1, std::memory_order_relaxed);
  ledger().read_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return kSuccess;
}

}  // namespace

ULLAGE_CARD_API int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  return noted(copy(to, from, bytes));
}
ULLAGE_CARD_API int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  return noted(copy(to, from, bytes, stream));
}
ULLAGE_CARD_API int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return noted(copy(to, from, bytes));
}
ULLAGE_CARD_API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return noted(copy(to, from, bytes, stream));
}
ULLAGE_CARD_API int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                 std::size_t width, std::size_t height, int) {
  return noted(copy_2d(plane(to, to_pitch), plane(from, from_pitch), width, height, nullptr));
}
ULLAGE_CARD_API int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                      std::size_t width, std::size_t height, int, void* stream) {
  return noted(copy_2d(plane(to, to_pitch), plane(from, from_pitch), width, height, stream));
}
ULLAGE_CARD_API int cudaMemcpyBatchAsync(void** to, void** from, const std::size_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (const Error error = copy(to[i], from[i], bytes[i]); error != kSuccess) return noted(error);
  }
  return kSuccess;
}
ULLAGE_CARD_API int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int) {
  return noted(use_current());
}
ULLAGE_CARD_API int cudaMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, int, void* stream) {
  note_work(stream, 0);
  return noted(use_current());
}
ULLAGE_CARD_API int cudaMemcpyFromSymbol(void* to, const void*, std::size_t bytes, std::size_t, int) {
  return noted(read_symbol(to, bytes));
}
ULLAGE_CARD_API int cudaMemcpyFromSymbolAsync(void* to, const void*, std::size_t bytes, std::size_t, int, void*) {
  return noted(read_symbol(to, bytes));
}
ULLAGE_CARD_API int cudaMemset(void* place, int value, std::size_t bytes) {
  return noted(set(place, value, bytes, nullptr));
}
ULLAGE_CARD_API int cudaMemsetAsync(void* place, int value, std::size_t bytes, void* stream) {
  return noted(set(place, value, bytes, stream));
}
ULLAGE_CARD_API int cudaMemset2D(void* place, std::size_t, int, std::size_t, std::size_t) {
  return is_device(reinterpret_cast<Address>(place)) ? kSuccess : noted(kNotSupported);
}
ULLAGE_CARD_API int cudaMemset2DAsync(void* place, std::size_t, int, std::size_t, std::size_t, void*) {
  return is_device(reinterpret_cast<Address>(place)) ? kSuccess : noted(kNotSupported);
}
ULLAGE_CARD_API int cudaMemPrefetchAsync() { return kSuccess; }
ULLAGE_CARD_API int cudaMemAdvise() { return kSuccess; }

ULLAGE_CARD_API int cuMemcpy(Address to, Address from, std::size_t bytes) { return copy(to, from, bytes, nullptr); }
ULLAGE_CARD_API int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return copy(reinterpret_cast<void*>(to), from, bytes);
}
ULLAGE_CARD_API int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return copy(reinterpret_cast<void*>(to), from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return copy(to, reinterpret_cast<const void*>(from), bytes);
}
ULLAGE_CARD_API int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return copy(to, reinterpret_cast<const void*>(from), bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyDtoD_v2(Address to, Address from, std::size_t bytes) {
  return copy(to, from, bytes, nullptr);
}
ULLAGE_CARD_API int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyPeer(Address to, void*, Address from, void*, std::size_t bytes) {
  return copy(to, from, bytes, nullptr);
}
ULLAGE_CARD_API int cuMemcpyPeerAsync(Address to, void*, Address from, void*, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpy2D_v2(const Copy2d* what) { return copy_2d(*what, nullptr); }
ULLAGE_CARD_API int cuMemcpy2DUnaligned_v2(const Copy2d* what) { return copy_2d(*what, nullptr); }
ULLAGE_CARD_API int cuMemcpy2DAsync_v2(const Copy2d* what, void* stream) { return copy_2d(*what, stream); }
ULLAGE_CARD_API int cuMemsetD8_v2(Address at, unsigned char value, std::size_t count) {
  return set_words(at, value, count, nullptr);
}
ULLAGE_CARD_API int cuMemsetD8Async(Address at, unsigned char value, std::size_t count, void* stream) {
  return set_words(at, value, count, stream);
}
ULLAGE_CARD_API int cuMemsetD16_v2(Address at, unsigned short value, std::size_t count) {
  return set_words(at, value, count, nullptr);
}
ULLAGE_CARD_API int cuMemsetD16Async(Address at, unsigned short value, std::size_t count, void* stream) {
  return set_words(at, value, count, stream);
}
ULLAGE_CARD_API int cuMemsetD32_v2(Address at, unsigned value, std::size_t count) {
  return set_words(at, value, count, nullptr);
}
ULLAGE_CARD_API int cuMemsetD32Async(Address at, unsigned value, std::size_t count, void* stream) {
  return set_words(at, value, count, stream);
}

}  // namespace ullage::drycard
