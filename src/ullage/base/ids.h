// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ids of steps, events, ops and storages. Each kind is a type of its own. Ids of one kind can be compared; ids of two
// kinds cannot. The only arithmetic is next() and previous(). An index into a private array is an id too (table.h); its
// `Number` is smaller if many are stored.

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
