// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frees bytes of the budget that libraries' code takes. Most of the code that torch touches while it is loaded (the
// registration of its ops) never runs again. It gives back about 75 MiB. A small net's first steps bring 35 of them
// back; the pool gets the rest. All is inline and throws nothing: libullage_preload.so, which needs libc alone, uses it
// too.

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ullage {
namespace library_pages {

// What the kernel says about each page of this process (/proc/self/pagemap; "pagemap" in the kernel's admin guide).
class PageMap final {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap() {
    if (file_ >= 0) ::close(file_);
  }

  static constexpr std::size_t kMost = 512;  // pages in one read
  // Is each of these pages either unchanged from its file or not there? False if the kernel does not tell.
  bool all_of_file(std::uintptr_t first_page, std::size_t pages) {
    std::array<std::uint64_t, kMost> entries;
    const std::size_t wanted = pages * sizeof(std::uint64_t);
    const auto got = ::pread(file_, entries.data(), wanted, static_cast<off_t>(first_page * sizeof(std::uint64_t)));
    if (got != static_cast<ssize_t>(wanted)) return false;
    return std::all_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(pages), [](std::uint64_t entry) {
      constexpr std::uint64_t kThere = std::uint64_t{3} << 62U;  // in memory, or in swap
      constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61U;
      return (entry & kThere) == 0 || (entry & kOfFile) != 0;
    });
  }

 private:
  const int file_;
};

inline int trim_library(dl_phdr_info* library, std::size_t, void* page_map) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t from = (library->dlpi_addr + segment.p_vaddr) / page;
    const std::uintptr_t to = (library->dlpi_addr + segment.p_vaddr + segment.p_memsz + page - 1) / page;
    // A kernel that refuses this does not map files in huge pages.
    ::madvise(reinterpret_cast<void*>(from * page), (to - from) * page, MADV_NOHUGEPAGE);
    for (std::uintptr_t at = from; at < to; at += PageMap::kMost) {
      const std::size_t pages = std::min<std::size_t>(PageMap::kMost, to - at);
      if (!static_cast<PageMap*>(page_map)->all_of_file(at, pages)) continue;
      ::madvise(reinterpret_cast<void*>(at * page), pages * page, MADV_DONTNEED);
    }
  }
  return 0;
}

}  // namespace library_pages

// Gives up the resident pages of all libraries' code and constants. Code that runs again comes back from the page
// cache, a few pages at a time. Huge pages are switched off for these mappings. Otherwise a kernel that keeps files in
// huge pages (Linux 6.18 with ext4) maps 2 MiB of a library for each page that is touched.
//
// A run of 512 pages is left alone if one of them is the process's own, with a debugger's breakpoint or a profiler's
// patch in it. It is also left alone if the kernel does not tell. Other threads may run meanwhile, because mappings
// that can be written are left out.
inline void trim_libraries() {
  library_pages::PageMap page_map;
  ::dl_iterate_phdr(&library_pages::trim_library, &page_map);
}

}  // namespace ullage
