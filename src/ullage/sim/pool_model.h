// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ullage's own pool with no memory behind it, one call at a time: what the pager asks of the store. Nothing is ever
// refused: ContractError for more than 2^50 bytes at once.

#include "ullage/store/store.h"

#include <memory>

namespace ullage::sim {

class PoolModel final {
 public:
  PoolModel();

  Address allocate(Bytes bytes);  // above zero
  void free(Address at);
  // For storages of store::Store::kLeastRange or more.
  void give_pages_up(Address at);            // spilled or dropped
  void take_pages(Address at);               // brought back
  void hand_over(Address from, Address to);  // the pages of `from` go behind `to`, which has none

  Bytes resident_now() const;                    // behind live storages: pages of ranges that have them, and slabs
  Bytes resident_peak() const { return peak_; }  // the most of that so far
  void restart_peak() { peak_ = resident_now(); }

 private:
  void note();

  store::NoPages pages_;
  store::FixedLimit limit_;
  std::unique_ptr<store::Store> store_;
  Bytes peak_;
};

}  // namespace ullage::sim
