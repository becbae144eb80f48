// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which parts of the reserved address space are vacant. Best fit, neighbours joined. Addresses cost nothing but have to
// be found again; bytes are none of this class's business.

#include "ullage/store/pages.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ullage::store {

class AddressSpace final {
 public:
  explicit AddressSpace(AddressRange all);

  // A vacant range of `size` at a multiple of `alignment` (a power of two); nothing when no gap is large enough.
  std::optional<Address> take(Bytes size, Bytes alignment);

  // Makes a taken range, or a part of one, vacant again.
  void give(AddressRange range);

  Bytes vacant() const { return vacant_; }

 private:
  using Gaps = std::map<Address, Bytes>;

  void insert(Address begin, Bytes size);
  void erase(Gaps::iterator gap);

  Gaps gaps_;                                    // by address; no two touch
  std::set<std::pair<Bytes, Address>> by_size_;  // the same gaps
  Bytes vacant_{};
};

}  // namespace ullage::store
