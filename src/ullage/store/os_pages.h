// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements the pool's pages (pages.h) in this machine's memory, on Linux: mmap reserves addresses, madvise populates
// them, and mremap moves pages to other addresses.

#include "ullage/store/pages.h"

namespace ullage::store {

class OsPages final : public Pages {
 public:
  OsPages() = default;
  OsPages(const OsPages&) = delete;
  OsPages& operator=(const OsPages&) = delete;
  // Unmaps the reservation; none of it may be in use any more. (A session's pool is never destroyed.)
  ~OsPages() override;

  // If a limit (ulimit -v, strict overcommit) refuses `wanted`, halves it again and again, down to 1 GiB. System if
  // that is refused too.
  Result<AddressRange> reserve(Bytes wanted) override;
  bool fill(Address at, Bytes length, PageKind kind) override;
  bool move(Address from, Address to, Bytes length) override;
  void drop(Address at, Bytes length) override;
  bool protect(Address at, Bytes length, Access access) override;

 private:
  AddressRange reserved_{};
};

}  // namespace ullage::store
