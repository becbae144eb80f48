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
  // Unmaps the reservation; none of it may be in use any more. (The pool of a budgeted process is never destroyed;
  // tests destroy theirs.)
  ~OsPages() override;

  // `wanted` must be 1 GiB or more: less is refused without a try. If a limit (ulimit -v, strict overcommit) refuses
  // it, halves it again and again, but not below 1 GiB. System if every size is refused. A second call is a
  // ContractError.
  Result<AddressRange> reserve(Bytes wanted) override;
  // The next four are as in pages.h.
  bool fill(Address at, Bytes length, PageKind kind) override;
  bool move(Address from, Address to, Bytes length) override;
  void drop(Address at, Bytes length) override;
  bool protect(Address at, Bytes length, Access access) override;

 private:
  AddressRange reserved_{};
};

}  // namespace ullage::store
