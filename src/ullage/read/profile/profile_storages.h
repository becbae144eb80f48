// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the allocation that a free belongs to. It is the one at the same address. If the profiler wrote no addresses
// (up to torch 1.9), it is the newest one of the same size.

#include "ullage/base/bytes.h"
#include "ullage/base/ids.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace ullage::read {

class LiveStorages final {
 public:
  struct NeverSeen {};     // it was allocated before the first event
  struct FreedAlready {};  // nothing was allocated there since its last free
  using Owner = std::variant<StorageId, NeverSeen, FreedAlready>;

  // Adds a storage. Returns the storage that was at this address before, if the trace never freed it.
  std::optional<StorageId> allocate(std::optional<Address> address, Bytes bytes, StorageId storage);
  Owner free(std::optional<Address> address, Bytes bytes);

 private:
  std::unordered_map<std::uint64_t, std::optional<StorageId>> by_address_;  // none: freed
  std::unordered_map<std::uint64_t, std::vector<StorageId>> by_size_;
};

}  // namespace ullage::read
