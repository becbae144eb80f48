// SPDX-License-Identifier: Apache-2.0
#pragma once

// A card's memory as the store sees it: addresses for life, and pages of 2 MiB that are mapped behind them, handed on
// and given back. Kernels run later than they are launched, so pages are taken away from an address only after the card
// has done what it was given on them (Driver::synchronize); nobody is told when somebody touches what is not there, so
// all access is announced (store::Pager::Settings: heal_faults and notices_writes are false).
//
// This is what makes the pager of the CPU the pager of a card: a pointer into a storage stays good while its bytes
// leave and come back, which no pool of cudaMalloc can promise.

#include "ullage/cuda/driver.h"
#include "ullage/store/pages.h"

#include <cstdint>
#include <unordered_map>

namespace ullage::cuda {

// Not thread-safe: the store calls under its lock.
class CardPages final : public store::Pages {
 public:
  // `driver` must outlive it, and so must the card's work on what it mapped.
  explicit CardPages(Driver& driver) : driver_(driver) {}
  ~CardPages() override;
  CardPages(const CardPages&) = delete;
  CardPages& operator=(const CardPages&) = delete;

  Bytes granularity() const override { return driver_.page(); }
  Result<store::AddressRange> reserve(Bytes wanted) override;
  // `kind` is Huge: a card has no smaller pages, and refuses them.
  bool fill(Address at, Bytes length, store::PageKind kind) override;
  bool move(Address from, Address to, Bytes length) override;
  void drop(Address at, Bytes length) override;
  // There is nothing to say: what is mapped can be read and written, and nothing tells who does.
  bool protect(Address, Bytes, store::Access) override { return true; }

 private:
  bool map_all(Address at, Bytes length);

  Driver& driver_;
  store::AddressRange reserved_{};
  std::unordered_map<std::uint64_t, abi::Handle> behind_;  // by address
};

}  // namespace ullage::cuda
