// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps track of the vacant parts of a range of addresses: the pool's reservation, the offsets of the spill file.
// Addresses are taken by best fit, and neighbouring gaps are joined. Vacant addresses cost no memory. Mapping
// pages at the addresses is the caller's task. Not thread-safe: the caller has a lock.

#include "ullage/store/pages.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ullage::store {

class AddressSpace final {
 public:
  explicit AddressSpace(AddressRange all);

  // Takes `size` vacant addresses that begin at a multiple of `alignment` (a power of two). Returns nothing if no gap
  // has room for them. ContractError if `size` is zero.
  std::optional<Address> take(Bytes size, Bytes alignment);

  // Takes `most` vacant addresses from the end of the smallest gap that has as many. If none has, takes the whole of
  // the largest gap. Returns nothing if no address is vacant.
  std::optional<AddressRange> take_up_to(Bytes most);

  // Makes a taken range, or a part of one, vacant again. ContractError if it overlaps a gap.
  void give(AddressRange range);

  Bytes vacant() const { return vacant_; }
  std::size_t gaps() const { return gaps_.size(); }

 private:
  using Gaps = std::map<Address, Bytes>;

  void insert(Address begin, Bytes size);
  void erase(Gaps::iterator gap);

  Gaps gaps_;                                    // by address; no two touch
  std::set<std::pair<Bytes, Address>> by_size_;  // the same gaps, smallest first
  Bytes vacant_{};
};

}  // namespace ullage::store
