// SPDX-License-Identifier: Apache-2.0

// Stands before malloc in every process of a run, and announces a large request to the runtime before it is served. The
// watch looks every 8 ms and allows for 8 MiB of growth. But a program may touch a new block faster: 32 MiB in 20 ms.
// Many smaller requests in a row are announced as one (a model that is turned into bytes tensor by tensor). The block
// itself comes from the malloc that the program has without Ullage, and free is left alone.

#include "ullage/preload/preload.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace ullage::preload {
namespace {

using Listener = bool (*)(std::size_t, bool);
std::atomic<Listener> listener{nullptr};
std::atomic<void (*)()> starts_listener{nullptr};

// Half of the budget's margin. Requests from kMedium on are added up until they reach kLarge; smaller ones are left to
// the watch.
constexpr std::size_t kLarge = std::size_t{4} << 20;
constexpr std::size_t kMedium = std::size_t{64} << 10;
std::atomic<std::size_t> together{0};
// The resident bytes when medium requests were announced last, or fewer if they fell since.
std::atomic<std::size_t> resident_then{0};
// Blocks that take the place of freed ones touch no new page. So medium requests are announced only if the process grew
// by more than this since.
constexpr std::size_t kGrown = kLarge / 2;

// Returns whether to announce this medium request, for itself and for those before it.
bool is_due(std::size_t bytes) {
  if (together.fetch_add(bytes, std::memory_order_relaxed) + bytes < kLarge) return false;
  together.store(0, std::memory_order_relaxed);
  const std::size_t now = resident_bytes(), then = resident_then.load(std::memory_order_relaxed);
  const bool grew = now > then + kGrown;
  if (grew || now < then) resident_then.store(now, std::memory_order_relaxed);
  return grew;
}

// The program's malloc is libc's.
bool is_of_libc = false;

// Returns false if the request is to fail; only if it `may_fail`.
bool announce(std::size_t bytes, bool may_fail = true) {
  if (bytes < kMedium) return true;
  const Listener listens = listener.load(std::memory_order_acquire);
  if (listens == nullptr) return true;
  const int error = errno;
  const bool is_served = (bytes < kLarge && !is_due(bytes)) || listens(std::max(bytes, kLarge), may_fail && is_of_libc);
  errno = is_served ? error : ENOMEM;
  return is_served;
}

constinit Next<void* (*)(std::size_t)> next_malloc{"malloc"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_calloc{"calloc"};
constinit Next<void* (*)(void*, std::size_t)> next_realloc{"realloc"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_memalign{"memalign"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_aligned_alloc{"aligned_alloc"};
constinit Next<int (*)(void**, std::size_t, std::size_t)> next_posix_memalign{"posix_memalign"};

__attribute__((constructor)) void find_all() {
  is_of_libc = reinterpret_cast<void*>(next_malloc.found()) == dlsym(RTLD_NEXT, "__libc_malloc");
  next_calloc.found();
  next_realloc.found();
  next_memalign.found();
  next_aligned_alloc.found();
  next_posix_memalign.found();
}

}  // namespace

void announce_a_program() {
  if (auto* const listens = starts_listener.load(std::memory_order_acquire)) listens();
}

}  // namespace ullage::preload

void ullage_announce_large_requests(bool (*listener)(std::size_t, bool)) {
  ullage::preload::listener.store(listener, std::memory_order_release);
}

void ullage_announce_programs(void (*starts)()) {
  ullage::preload::starts_listener.store(starts, std::memory_order_release);
}

#define ULLAGE_EXPORTED extern "C" __attribute__((visibility("default")))

ULLAGE_EXPORTED void* malloc(std::size_t bytes) noexcept {
  return ullage::preload::announce(bytes) ? ullage::preload::next_malloc(bytes) : nullptr;
}

ULLAGE_EXPORTED void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) ullage::preload::announce(all, false);
  return ullage::preload::next_calloc(count, bytes);
}

ULLAGE_EXPORTED void* realloc(void* block, std::size_t bytes) noexcept {
  ullage::preload::announce(bytes, false);
  return ullage::preload::next_realloc(block, bytes);
}

ULLAGE_EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return ullage::preload::announce(bytes) ? ullage::preload::next_memalign(alignment, bytes) : nullptr;
}

ULLAGE_EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return ullage::preload::announce(bytes) ? ullage::preload::next_aligned_alloc(alignment, bytes) : nullptr;
}

ULLAGE_EXPORTED int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  return ullage::preload::announce(bytes) ? ullage::preload::next_posix_memalign(block, alignment, bytes) : ENOMEM;
}
