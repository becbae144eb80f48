// SPDX-License-Identifier: Apache-2.0

// Stands before mmap() and the calls that take a mapping away, in every process of a run. Tells the runtime which files
// the program maps for itself alone, to read them and not to run them: weights (safetensors, torch.load(mmap=True)).
// The pages of such a file can be let go (store/file_pages.h). Not seen are mprotect(), and what libc and the dynamic
// loader map inside. What mremap() grows or moves is no longer taken for a file.

#include "ullage/preload/preload.h"

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>

namespace ullage::preload {
namespace {

std::atomic<void (*)(void*, std::size_t, bool)> mapped{nullptr};
std::atomic<void (*)(void*, std::size_t)> unmapping{nullptr};

using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
constinit Next<Map> next_mmap{"mmap"}, next_mmap64{"mmap64"};
constinit Next<int (*)(void*, std::size_t)> next_munmap{"munmap"};
constinit Next<void* (*)(void*, std::size_t, std::size_t, int, ...)> next_mremap{"mremap"};

__attribute__((constructor)) void find_all() {
  next_mmap.found();
  next_mmap64.found();
  next_munmap.found();
  next_mremap.found();
}

void note_unmapping(void* at, std::size_t size) {
  if (const auto listens = unmapping.load(std::memory_order_acquire); listens != nullptr) listens(at, size);
}

void* map(Next<Map>& next, void* at, std::size_t size, int access, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED) != 0) note_unmapping(at, size);
  void* const got = next(at, size, access, flags, file, offset);
  const bool alone = (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) == 0;
  if (got == MAP_FAILED || !alone || (access & PROT_READ) == 0 || (access & PROT_EXEC) != 0) return got;
  if (const auto listens = mapped.load(std::memory_order_acquire); listens != nullptr)
    listens(got, size, (access & PROT_WRITE) != 0);
  return got;
}

}  // namespace
}  // namespace ullage::preload

void ullage_announce_file_mappings(void (*mapped)(void* at, std::size_t size, bool writable),
                                   void (*unmapping)(void* at, std::size_t size)) {
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
  ullage::preload::note_unmapping(at, size);
  return ullage::preload::next_munmap(at, size);
}

ULLAGE_EXPORTED void* mremap(void* at, std::size_t size, std::size_t wanted, int flags, ...) noexcept {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    std::va_list rest;
    va_start(rest, flags);
    to = va_arg(rest, void*);
    va_end(rest);
    ullage::preload::note_unmapping(to, wanted);
  }
  ullage::preload::note_unmapping(at, size);
  return ullage::preload::next_mremap(at, size, wanted, flags, to);
}
