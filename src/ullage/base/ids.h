// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ids of steps, events, ops and storages: one word each, compared but never added, never mixed. Indices into arrays of
// one's own are ids too (table.h), of a smaller number where there are many of them.

#include <compare>
#include <cstdint>

namespace ullage {

template <class Tag, class Number = std::uint64_t>
struct Id {
  Number value = 0;
  constexpr Id next() const { return {static_cast<Number>(value + 1)}; }
  constexpr Id previous() const { return {static_cast<Number>(value - 1)}; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using StepId = Id<struct StepTag>;
using EventId = Id<struct EventTag>;
using OpId = Id<struct OpTag>;
using StorageId = Id<struct StorageTag>;

}  // namespace ullage
