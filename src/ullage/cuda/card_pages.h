// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements store::Pages on a card. A storage keeps its address for life; pages of 2 MiB are mapped there, moved to
// other addresses, and freed. Kernels run later than they are launched, so pages leave an address only after the card
// has done its work on them (Driver::synchronize). A touch where there are no pages is not reported, so every access
// must be announced (store::Pager::Settings: heal_faults and notices_writes are false).
//
// So the CPU's pager can serve a card too: a pointer into a storage stays valid while the bytes leave and come back. No
// pool of cudaMalloc can promise that.

#include "ullage/cuda/driver.h"
#include "ullage/store/pages.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ullage::cuda {

// Not thread-safe: the store calls under its lock.
class CardPages final : public store::Pages {
 public:
  // `driver` must outlive this object. The destructor waits for the card's work before it unmaps the pages.
  explicit CardPages(Driver& driver) : driver_(driver) {}
  ~CardPages() override;
  CardPages(const CardPages&) = delete;
  CardPages& operator=(const CardPages&) = delete;

  Bytes granularity() const override { return driver_.page(); }
  Result<store::AddressRange> reserve(Bytes wanted) override;
  // Returns false unless `kind` is Huge, because a card has no smaller pages.
  bool fill(Address at, Bytes length, store::PageKind kind) override;
  bool move(Address from, Address to, Bytes length) override;
  void drop(Address at, Bytes length) override;
  // Has no effect: what is mapped can be read and written, and no access is reported.
  bool protect(Address, Bytes, store::Access) override { return true; }

  bool holds_unmapped() const override { return true; }
  bool unmap(Address at, Bytes length) override;
  // If the last call was unmap() with the same length, the bytes of the pages are in the same order as before.
  bool remap(Address at, Bytes length) override;
  void drop_unmapped(Bytes length) override;

 private:
  Driver& driver_;
  store::AddressRange reserved_{};
  std::unordered_map<std::uint64_t, abi::Handle> behind_;  // pages by the address that they are mapped at
  std::vector<abi::Handle> unmapped_;                      // the last one is mapped first
};

}  // namespace ullage::cuda
