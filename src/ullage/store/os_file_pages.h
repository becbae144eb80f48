// SPDX-License-Identifier: Apache-2.0
#pragma once

// FilePages of this process. The preload sees the program's calls of mmap(), and tells it what is mapped.

#include "ullage/store/file_pages.h"

#include <atomic>
#include <map>

namespace ullage::store {

class OsFilePages final : public FilePages {
 public:
  // A file was mapped at [at, at + size) for this process alone (MAP_PRIVATE). `writable`: the process may write to it.
  void mapped_at(Address at, Bytes size, bool writable);
  // Whatever is mapped there is about to be unmapped. True: part of a file is. Call it before the kernel is called, so
  // that what another thread maps there next is never taken for the file.
  bool unmapped_at(Address at, Bytes size);

  bool holds(Address at) const override;
  Bytes mapped() const override { return Bytes{mapped_.load(std::memory_order_relaxed)}; }
  Bytes all_there() const override;
  std::vector<AddressRange> mappings() const override;
  Count count(AddressRange range) const override;
  Bytes let_go(AddressRange range) override;
  std::mutex& fork_lock() override { return lock_; }

 private:
  struct Mapping {
    Bytes size;
    bool writable = false;
  };
  // Calls f(begin, size, writable) for each part of `range` at which a file is mapped, in whole pages.
  template <class F>
  void each_part(AddressRange range, const F& f) const;
  void remove(Address at, Bytes size);

  mutable std::mutex lock_;
  std::map<Address, Mapping> mappings_;
  std::atomic<std::uint64_t> mapped_{0};
};

}  // namespace ullage::store
