// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/library_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace ullage::runtime {
namespace {

int by_small_pages(dl_phdr_info* library, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t from = (library->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t to = (library->dlpi_addr + segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
    ::madvise(reinterpret_cast<void*>(from), to - from,
              MADV_NOHUGEPAGE);  // a kernel that knows it not maps no such pages
  }
  return 0;
}

}  // namespace

void map_libraries_by_small_pages() { ::dl_iterate_phdr(&by_small_pages, nullptr); }

}  // namespace ullage::runtime
