// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/library_pages.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ullage::runtime {
namespace {

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

int trim_library(dl_phdr_info* library, std::size_t, void* page_map) {
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

}  // namespace

void trim_libraries() {
  PageMap page_map;
  ::dl_iterate_phdr(&trim_library, &page_map);
}

}  // namespace ullage::runtime
