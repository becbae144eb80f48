// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pages of Linux: mmap for address space, madvise to populate, mremap to hand pages on.

#include "ullage/store/pages.h"

namespace ullage::store {

class OsPages final : public Pages {
 public:
  OsPages() = default;
  OsPages(const OsPages&) = delete;
  OsPages& operator=(const OsPages&) = delete;
  // Unmaps the reservation: nothing of it may be in use any more. A process-wide pool is never destroyed.
  ~OsPages() override;

  // Tries ever smaller sizes down to 1 GiB where a limit (ulimit -v, strict overcommit) refuses the wanted one.
  Result<AddressRange> reserve(Bytes wanted) override;
  bool fill(Address at, Bytes length, PageKind kind) override;
  bool move(Address from, Address to, Bytes length) override;
  void drop(Address at, Bytes length) override;
  bool protect(Address at, Bytes length, Access access) override;

 private:
  AddressRange reserved_{};
};

}  // namespace ullage::store
