// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/address_space.h"

#include <algorithm>
#include <iterator>

namespace ullage::store {

AddressSpace::AddressSpace(AddressRange all) { insert(all.begin, all.size); }

void AddressSpace::insert(Address begin, Bytes size) {
  if (size == Bytes{}) return;
  gaps_.emplace(begin, size);
  by_size_.emplace(size, begin);
  vacant_ += size;
}

void AddressSpace::erase(Gaps::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  vacant_ -= gap->second;
  gaps_.erase(gap);
}

std::optional<Address> AddressSpace::take(Bytes size, Bytes alignment) {
  ULLAGE_CHECK(size > Bytes{}, "a range of no bytes");
  // A gap of size + alignment always fits, so only smaller gaps are tried in vain.
  for (auto it = by_size_.lower_bound({size, Address{}}); it != by_size_.end(); ++it) {
    const AddressRange gap{it->second, it->first};
    const Address begin{round_up(Bytes{gap.begin.value}, alignment).count};
    if (begin + size > gap.end()) continue;
    erase(gaps_.find(gap.begin));
    insert(gap.begin, begin - gap.begin);
    insert(begin + size, gap.end() - (begin + size));
    return begin;
  }
  return std::nullopt;
}

std::optional<AddressRange> AddressSpace::take_up_to(Bytes most) {
  if (gaps_.empty()) return std::nullopt;
  auto found = by_size_.lower_bound({most, Address{}});
  if (found == by_size_.end()) --found;
  const AddressRange gap{found->second, found->first};
  const Bytes size = std::min(gap.size, most);
  erase(gaps_.find(gap.begin));
  insert(gap.begin, gap.size - size);
  return AddressRange{gap.begin + (gap.size - size), size};
}

void AddressSpace::give(AddressRange range) {
  auto next = gaps_.lower_bound(range.begin);
  ULLAGE_CHECK(next == gaps_.end() || range.end() <= next->first, "range given back twice");
  if (next != gaps_.end() && next->first == range.end()) {
    range.size += next->second;
    erase(next);
  }
  next = gaps_.lower_bound(range.begin);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    ULLAGE_CHECK(before->first + before->second <= range.begin, "range given back twice");
    if (before->first + before->second == range.begin) {
      range = {before->first, before->second + range.size};
      erase(before);
    }
  }
  insert(range.begin, range.size);
}

}  // namespace ullage::store
