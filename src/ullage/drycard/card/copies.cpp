// SPDX-License-Identifier: Apache-2.0
// Copies and memset. Device memory has no content: a copy to it is dropped, a copy from it gives zeros. So a card's
// memory takes no host memory, and no old bytes are ever read. A copy between two places of the host is real. Two kinds
// of copies from a card give more than zeros. values.py may know the numbers that an op is about to read, and then sets
// them first (ullage_drycard_answer_reads). Small buffers that a collective op wrote have content (copies.h).

#include "ullage/drycard/card/copies.h"

#include "ullage/drycard/card/memory.h"
#include "ullage/drycard/card/streams.h"
#include "ullage/drycard/card/work.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace ullage::drycard {
namespace {

// The values that this thread's reads from a card return: the numbers one after the other, then the last one again and
// again. Without numbers: zeros.
struct Answer {
  static constexpr int kMost = 16;
  std::array<std::int64_t, kMost> numbers{};
  int count = 0;
  int next = 0;
  int reads = 0;
  bool known = false;
};
thread_local Answer answer;

// The bytes of this thread's last copy from the host to a card, if it was at most 1 MiB.
struct LastCopy {
  static constexpr std::size_t kMost = std::size_t{1} << 20;
  Address to = 0;
  std::vector<char> bytes;
};
thread_local LastCopy last_copy;

void remember(Address to, Address from, std::size_t bytes) {
  last_copy.to = 0;
  if (bytes > LastCopy::kMost || is_device(from)) return;
  const char* begin = reinterpret_cast<const char*>(from);
  last_copy.bytes.assign(begin, begin + bytes);
  last_copy.to = to;
}

// The buffers that collective ops wrote, the newest last.
struct Handed {
  static constexpr std::size_t kMost = 64;
  std::mutex lock;
  std::vector<std::pair<Address, std::vector<char>>> buffers;

  // Removes and returns the content of the buffer that has this address and size; empty if there is none.
  std::vector<char> take(Address at, std::size_t bytes) {
    const std::lock_guard hold(lock);
    const auto found =
        std::ranges::find_if(buffers, [&](const auto& one) { return one.first == at && one.second.size() == bytes; });
    if (found == buffers.end()) return {};
    std::vector<char> content = std::move(found->second);
    buffers.erase(found);
    return content;
  }
  // Replaces the content of the buffer at `at`. Without `content` it is unknown from now on.
  void put(Address at, std::vector<char> content) {
    const std::lock_guard hold(lock);
    std::erase_if(buffers, [&](const auto& one) { return one.first == at; });
    if (content.empty()) return;
    if (buffers.size() == kMost) buffers.erase(buffers.begin());
    buffers.emplace_back(at, std::move(content));
  }
};
Handed& handed() {
  static Handed* const one = new Handed;
  return *one;
}

// Sets bytes of the host to zero. Whole pages of memory that is private and has no file are given back instead: they
// read as zeros and take no memory. So the gigabytes that a program copies from a card to such memory do not fill the
// host.
void clear(void* to, std::size_t bytes) {
  const auto begin = reinterpret_cast<Address>(to), end = begin + bytes;
  const Address first = in_pages(begin), last = end / kPage * kPage;
  bool given_back = false;
  if (first < last) {
    const std::lock_guard hold(lock());
    const auto block = block_around(to);
    given_back = block && block->private_host && end <= block->at + block->size &&
                 ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) == 0;
  }
  if (!given_back) {
    std::memset(to, 0, bytes);
    return;
  }
  std::memset(to, 0, first - begin);
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

void give_answer(void* to, Address from, std::size_t bytes) {
  clear(to, bytes);
  ++answer.reads;
  if (const std::vector<char> content = handed().take(from, bytes); !content.empty()) {
    std::copy(content.begin(), content.end(), static_cast<char*>(to));
    return;
  }
  if (answer.count == 0) return;
  const std::int64_t number = answer.numbers[static_cast<std::size_t>(answer.next)];
  if (answer.next + 1 < answer.count) ++answer.next;
  std::memcpy(to, &number, std::min(bytes, sizeof number));  // little endian: its first four bytes are the same number
}

void move(Address to, Address from, std::size_t bytes) {
  if (bytes == 0) return;
  if (is_device(to)) {
    handed().put(to, handed().take(from, bytes));
    return remember(to, from, bytes);
  }
  if (is_device(from)) {
    give_answer(reinterpret_cast<void*>(to), from, bytes);
  } else {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  }
}

void count_read(Address to, Address from, std::size_t bytes) {
  if (bytes == 0 || !is_device(from) || is_device(to) || answer.known) return;
  ledger().reads.fetch_add(1, std::memory_order_relaxed);
  ledger().read_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

Error copy(Address to, Address from, std::size_t bytes, const void* stream, Calls by = Calls::Driver) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes != 0 && (to == 0 || from == 0)) return kInvalidValue;
  count_read(to, from, bytes);
  move(to, from, bytes);
  note_work(stream, 0);
  give_copy(stream, to, from, bytes, by);
  return kSuccess;
}

Error copy(void* to, const void* from, std::size_t bytes, const void* stream = nullptr) {
  return copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes, stream, Calls::Runtime);
}

// A synchronous copy waits until the default stream has done all its work.
Error waited_for(Error error) {
  finish_stream(nullptr);
  return error;
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

Error fill(void* place, int value, std::size_t bytes, const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  if (bytes != 0 && !is_device(reinterpret_cast<Address>(place))) std::memset(place, value, bytes);
  note_work(stream, 0);
  give_set(stream, reinterpret_cast<Address>(place), bytes);
  return kSuccess;
}

// Sets words of one, two or four bytes. Only memory of the host (managed, pinned) is really written.
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

// The part of CUDA_MEMCPY2D that is read. Memory types of the driver: 1 host, 2 device, 3 array, 4 unified.
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

// A variable of a module has an address on the card but no content, so reading it gives zeros.
Error read_symbol(void* to, std::size_t bytes) {
  if (is_device(reinterpret_cast<Address>(to))) return kSuccess;
  std::memset(to, 0, bytes);
  ledger().reads.fetch_add(1, std::memory_order_relaxed);
  ledger().read_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return kSuccess;
}

}  // namespace

// Sets what the reads of this thread give from now on: `count` numbers one after the other (16 at most); a `count` of 0
// means zeros again. If `known`, the numbers are true and the reads do not count as reads of unknown bytes. Returns how
// often this thread has read since the last call.
ULLAGE_CARD_API int ullage_drycard_answer_reads(const std::int64_t* numbers, int count, int known) {
  const int reads = answer.reads;
  answer = {};
  answer.count = std::min(count, Answer::kMost);
  std::copy_n(numbers, answer.count, answer.numbers.begin());
  answer.known = known != 0;
  return reads;
}

// If this thread's last copy from the host to a card had `bytes` bytes and went to `to`, writes its content to `out`.
// Then returns 1. Otherwise writes nothing and returns 0.
ULLAGE_CARD_API int ullage_drycard_last_copy(Address to, void* out, std::size_t bytes) {
  if (last_copy.to == 0 || last_copy.to != to || last_copy.bytes.size() != bytes) return 0;
  std::copy(last_copy.bytes.begin(), last_copy.bytes.end(), static_cast<char*>(out));
  return 1;
}

void hand_on(Address from, Address to, std::size_t bytes, int times) {
  if (last_copy.to == 0 || last_copy.to != from || last_copy.bytes.size() != bytes) return;
  for (int i = 0; i < times; ++i) handed().put(to + static_cast<std::size_t>(i) * bytes, last_copy.bytes);
}

ULLAGE_CARD_API int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  return noted(waited_for(copy(to, from, bytes)));
}
ULLAGE_CARD_API int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
  return noted(copy(to, from, bytes, stream));
}
ULLAGE_CARD_API int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return noted(waited_for(copy(to, from, bytes)));
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
  return noted(fill(place, value, bytes, nullptr));
}
ULLAGE_CARD_API int cudaMemsetAsync(void* place, int value, std::size_t bytes, void* stream) {
  return noted(fill(place, value, bytes, stream));
}
ULLAGE_CARD_API int cudaMemset2D(void* place, std::size_t, int, std::size_t, std::size_t) {
  return is_device(reinterpret_cast<Address>(place)) ? kSuccess : noted(kNotSupported);
}
ULLAGE_CARD_API int cudaMemset2DAsync(void* place, std::size_t, int, std::size_t, std::size_t, void*) {
  return is_device(reinterpret_cast<Address>(place)) ? kSuccess : noted(kNotSupported);
}
ULLAGE_CARD_API int cudaMemPrefetchAsync() { return kSuccess; }
ULLAGE_CARD_API int cudaMemAdvise() { return kSuccess; }

ULLAGE_CARD_API int cuMemcpy(Address to, Address from, std::size_t bytes) {
  return waited_for(copy(to, from, bytes, nullptr));
}
ULLAGE_CARD_API int cuMemcpyAsync(Address to, Address from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return cuMemcpy(to, reinterpret_cast<Address>(from), bytes);
}
ULLAGE_CARD_API int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return copy(to, reinterpret_cast<Address>(from), bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return cuMemcpy(reinterpret_cast<Address>(to), from, bytes);
}
ULLAGE_CARD_API int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return copy(reinterpret_cast<Address>(to), from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyDtoD_v2(Address to, Address from, std::size_t bytes) { return cuMemcpy(to, from, bytes); }
ULLAGE_CARD_API int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return copy(to, from, bytes, stream);
}
ULLAGE_CARD_API int cuMemcpyPeer(Address to, void*, Address from, void*, std::size_t bytes) {
  return cuMemcpy(to, from, bytes);
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
