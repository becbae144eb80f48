// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/pool/library_pages.h"

#include "ullage/store/page_map.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ullage::runtime {
namespace {

// Is each of these pages (PageMap::kMost at most) either unchanged from its file or not there?
bool all_of_file(const store::PageMap& map, std::uintptr_t at, std::size_t pages) {
  std::array<store::PageMap::Entry, store::PageMap::kMost> entries;
  const std::span<store::PageMap::Entry> some(entries.data(), pages);
  if (!map.read(Address{at}, some)) return false;
  return std::all_of(some.begin(), some.end(), [](store::PageMap::Entry entry) { return !entry.is_written(); });
}

int trim_library(dl_phdr_info* library, std::size_t, void* page_map) {
  using store::PageMap;
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
      if (!all_of_file(*static_cast<const PageMap*>(page_map), at * page, pages)) continue;
      ::madvise(reinterpret_cast<void*>(at * page), pages * page, MADV_DONTNEED);
    }
  }
  return 0;
}

}  // namespace

void trim_libraries() {
  store::PageMap page_map;
  ::dl_iterate_phdr(&trim_library, &page_map);
}

}  // namespace ullage::runtime
