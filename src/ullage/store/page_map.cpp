// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/page_map.h"

#include "ullage/store/pages.h"

#include <fcntl.h>
#include <unistd.h>

namespace ullage::store {

static_assert(sizeof(PageMap::Entry) == sizeof(std::uint64_t), "the kernel's entries have 64 bits");

PageMap::PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

PageMap::~PageMap() {
  if (file_ >= 0) ::close(file_);
}

bool PageMap::read(Address at, std::span<Entry> entries) const {
  const std::size_t wanted = entries.size_bytes();
  const std::uint64_t first = at.value / kSmallPage.count;
  const auto got = ::pread(file_, entries.data(), wanted, static_cast<off_t>(first * sizeof(Entry)));
  return got == static_cast<ssize_t>(wanted);
}

}  // namespace ullage::store
