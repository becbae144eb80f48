// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models Ullage's own pool without any memory, for code that simulates the pager. It has one function for each call
// that the pager makes. There is no limit on resident bytes. ContractError if 2^50 bytes of addresses do not suffice.

#include "ullage/store/store.h"

#include <memory>

namespace ullage::sim {

class PoolModel final {
 public:
  PoolModel();

  Address allocate(Bytes bytes);  // above zero
  void free(Address at);
  // The next three are for storages of store::Store::kLeastRange bytes or more.
  void give_pages_up(Address at);            // the storage is spilled or dropped
  void take_pages(Address at);               // the storage is restored
  void hand_over(Address from, Address to);  // moves the pages of `from` to `to`, which has none

  Bytes resident_now() const;                    // pages of live storages and slabs; idle pages do not count
  Bytes resident_peak() const { return peak_; }  // since the beginning or restart_peak()
  void restart_peak() { peak_ = resident_now(); }

 private:
  void note();

  store::NoPages pages_;
  store::FixedLimit limit_;
  std::unique_ptr<store::Store> store_;
  Bytes peak_;
};

}  // namespace ullage::sim
