// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile_storages.h"

#include <utility>

namespace ullage::read {

// by_address_ keeps an entry without a storage for each address that was freed. So an address without an entry was
// allocated before the trace began, and one with an empty entry was freed already.

std::optional<StorageId> LiveStorages::allocate(std::optional<Address> address, Bytes bytes, StorageId storage) {
  if (address) return std::exchange(by_address_[address->value], storage);
  by_size_[bytes.count].push_back(storage);
  return std::nullopt;
}

LiveStorages::Owner LiveStorages::free(std::optional<Address> address, Bytes bytes) {
  if (address) {
    const auto [found, never_seen] = by_address_.try_emplace(address->value);  // adds an empty entry if there is none
    if (never_seen) return NeverSeen{};
    if (!found->second) return FreedAlready{};
    return *std::exchange(found->second, std::nullopt);
  }
  const auto found = by_size_.find(bytes.count);
  if (found == by_size_.end() || found->second.empty()) return NeverSeen{};
  const StorageId newest = found->second.back();
  found->second.pop_back();
  return newest;
}

}  // namespace ullage::read
