// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ids of steps, events, ops and storages: one word each, compared but never added, never mixed.

#include <compare>
#include <cstdint>

namespace ullage {

template <class Tag>
struct Id {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StepId = Id<struct StepTag>;
using EventId = Id<struct EventTag>;
using OpId = Id<struct OpTag>;
using StorageId = Id<struct StorageTag>;

}  // namespace ullage
