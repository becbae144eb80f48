// SPDX-License-Identifier: Apache-2.0

// Stands before malloc in every process of a run, and announces a large request to the runtime before it is served. The
// program may touch the block faster than any watch looks: 32 MiB take 20 ms. The block itself comes from the malloc
// that the program has without Ullage, and free is left alone.

#include "ullage/preload/preload.h"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace ullage::preload {
namespace {

using Listener = void (*)(std::size_t);
std::atomic<Listener> listener{nullptr};

// Smaller requests are left to the watch: its margin is twice as large.
constexpr std::size_t kLarge = std::size_t{4} << 20;

void announce(std::size_t bytes) {
  if (bytes < kLarge) return;
  const Listener listens = listener.load(std::memory_order_acquire);
  if (listens == nullptr) return;
  const int error = errno;
  listens(bytes);
  errno = error;
}

// The function of that name behind this library. The dynamic loader allocates nothing to find it, but takes its lock:
// find_all() has all of them found before the process has a second thread.
template <typename Function>
class Next final {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    return found()(arguments...);
  }
  Function found() {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function;
  }

 private:
  const char* const name_;
  std::atomic<Function> function_{nullptr};
};

constinit Next<void* (*)(std::size_t)> next_malloc{"malloc"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_calloc{"calloc"};
constinit Next<void* (*)(void*, std::size_t)> next_realloc{"realloc"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_memalign{"memalign"};
constinit Next<void* (*)(std::size_t, std::size_t)> next_aligned_alloc{"aligned_alloc"};
constinit Next<int (*)(void**, std::size_t, std::size_t)> next_posix_memalign{"posix_memalign"};

__attribute__((constructor)) void find_all() {
  next_malloc.found();
  next_calloc.found();
  next_realloc.found();
  next_memalign.found();
  next_aligned_alloc.found();
  next_posix_memalign.found();
}

}  // namespace
}  // namespace ullage::preload

void ullage_announce_large_requests(void (*listener)(std::size_t)) {
  ullage::preload::listener.store(listener, std::memory_order_release);
}

#define ULLAGE_EXPORTED extern "C" __attribute__((visibility("default")))

ULLAGE_EXPORTED void* malloc(std::size_t bytes) noexcept {
  ullage::preload::announce(bytes);
  return ullage::preload::next_malloc(bytes);
}

ULLAGE_EXPORTED void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) ullage::preload::announce(all);
  return ullage::preload::next_calloc(count, bytes);
}

ULLAGE_EXPORTED void* realloc(void* block, std::size_t bytes) noexcept {
  ullage::preload::announce(bytes);
  return ullage::preload::next_realloc(block, bytes);
}

ULLAGE_EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  ullage::preload::announce(bytes);
  return ullage::preload::next_memalign(alignment, bytes);
}

ULLAGE_EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ullage::preload::announce(bytes);
  return ullage::preload::next_aligned_alloc(alignment, bytes);
}

ULLAGE_EXPORTED int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  ullage::preload::announce(bytes);
  return ullage::preload::next_posix_memalign(block, alignment, bytes);
}
