// SPDX-License-Identifier: Apache-2.0

// Stands before mmap() and the calls that take a mapping away, in every process of a run. Tells the runtime which files
// the program maps for itself alone, to read them and not to run them: weights (safetensors, torch.load(mmap=True)).
// The pages of such a file can be let go (store/file_pages.h). What mremap() grows or moves, or mprotect() gives
// another access, is no longer taken for a file. What libc and the dynamic loader map inside is not seen.

#include "ullage/preload/preload.h"

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <utility>

namespace ullage::preload {
namespace {

std::atomic<void (*)(void*, std::size_t, bool)> mapped{nullptr};
std::atomic<bool (*)(void*, std::size_t)> unmapping{nullptr};
std::atomic<void (*)(void*, std::size_t)> unmapped{nullptr};
// The runtime may allocate while it is told. An allocator that maps and unmaps through this library must not be told of
// then: the runtime holds its lock.
thread_local bool telling = false;

template <typename Listener, typename... Arguments>
auto tell(const std::atomic<Listener>& listener, Arguments... arguments) {
  using Answer = decltype(std::declval<Listener>()(arguments...));
  const Listener listens = listener.load(std::memory_order_acquire);
  if (listens == nullptr || telling) return Answer();
  struct Telling {
    Telling() { telling = true; }
    ~Telling() { telling = false; }
  } const now;
  return listens(arguments...);
}

using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
constinit Next<Map> next_mmap{"mmap"}, next_mmap64{"mmap64"};
constinit Next<int (*)(void*, std::size_t)> next_munmap{"munmap"};
constinit Next<int (*)(void*, std::size_t, int)> next_mprotect{"mprotect"};
constinit Next<void* (*)(void*, std::size_t, std::size_t, int, ...)> next_mremap{"mremap"};

__attribute__((constructor)) void find_all() {
  next_mmap.found();
  next_mmap64.found();
  next_munmap.found();
  next_mprotect.found();
  next_mremap.found();
}

// Makes a call that takes away what is mapped at [at, at + size).
template <typename Call>
auto take_away(void* at, std::size_t size, const Call& call) {
  const bool file = tell(unmapping, at, size);
  const auto result = call();
  const int error = errno;
  if (file) tell(unmapped, at, size);
  errno = error;
  return result;
}

void* map(Next<Map>& next, void* at, std::size_t size, int access, int flags, int file, off_t offset) {
  const auto call = [&] { return next(at, size, access, flags, file, offset); };
  void* const got = (flags & MAP_FIXED) != 0 ? take_away(at, size, call) : call();
  const bool alone = (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) == 0;
  if (got == MAP_FAILED || !alone || (access & PROT_READ) == 0 || (access & PROT_EXEC) != 0) return got;
  tell(mapped, got, size, (access & PROT_WRITE) != 0);
  return got;
}

}  // namespace
}  // namespace ullage::preload

void ullage_announce_file_mappings(void (*mapped)(void* at, std::size_t size, bool writable),
                                   bool (*unmapping)(void* at, std::size_t size),
                                   void (*unmapped)(void* at, std::size_t size)) {
  ullage::preload::unmapped.store(unmapped, std::memory_order_release);
  ullage::preload::unmapping.store(unmapping, std::memory_order_release);
  ullage::preload::mapped.store(mapped, std::memory_order_release);
}

#define ULLAGE_EXPORTED extern "C" __attribute__((visibility("default")))

ULLAGE_EXPORTED void* mmap(void* at, std::size_t size, int access, int flags, int file, off_t offset) noexcept {
  return ullage::preload::map(ullage::preload::next_mmap, at, size, access, flags, file, offset);
}

ULLAGE_EXPORTED void* mmap64(void* at, std::size_t size, int access, int flags, int file, off64_t offset) noexcept {
  return ullage::preload::map(ullage::preload::next_mmap64, at, size, access, flags, file, offset);
}

ULLAGE_EXPORTED int munmap(void* at, std::size_t size) noexcept {
  return ullage::preload::take_away(at, size, [&] { return ullage::preload::next_munmap(at, size); });
}

// Another access is no reason to unmap. But what the runtime knows of the file's pages no longer holds.
ULLAGE_EXPORTED int mprotect(void* at, std::size_t size, int access) noexcept {
  return ullage::preload::take_away(at, size, [&] { return ullage::preload::next_mprotect(at, size, access); });
}

ULLAGE_EXPORTED void* mremap(void* at, std::size_t size, std::size_t wanted, int flags, ...) noexcept {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    std::va_list rest;
    va_start(rest, flags);
    to = va_arg(rest, void*);
    va_end(rest);
  }
  const auto move = [&] {
    return ullage::preload::take_away(at, size,
                                      [&] { return ullage::preload::next_mremap(at, size, wanted, flags, to); });
  };
  return to != nullptr ? ullage::preload::take_away(to, wanted, move) : move();
}
