// SPDX-License-Identifier: Apache-2.0
// Each array of a step and of a problem accepts indices of its own kind only. Any other index must not compile.
#include "ullage/plan/problem/problem.h"
#include "ullage/plan/problem/timeline.h"

#include <cstddef>
#include <tuple>
#include <utility>

namespace ullage::plan {
namespace {

template <class Items, class Index>
concept IndexedBy = requires(const Items& items, Index index) {
  items[index];
};

using Kinds = std::tuple<OpIndex, ValueIndex, StorageIndex, GapIndex, MovedIndex, RecipeIndex, PositionIndex, SlotIndex,
                         ListIndex, MadeIndex, HappeningIndex, StayIndex>;

// Counts the kinds of index, plain numbers included, that `Items` accepts.
template <class Items>
constexpr int kinds_of() {
  return []<class... Index>(std::tuple<Index...>*) {
    return (int(IndexedBy<Items, Index>) + ... + 0) + int(IndexedBy<Items, std::size_t>) + int(IndexedBy<Items, int>);
  }(static_cast<Kinds*>(nullptr));
}
template <class Items, class Index>
constexpr bool kTakesOnly = IndexedBy<Items, Index>&& kinds_of<Items>() == 1;

static_assert(kTakesOnly<decltype(Step::ops), OpIndex>);
static_assert(kTakesOnly<decltype(Step::values), ValueIndex>);
static_assert(kTakesOnly<decltype(Step::storages), StorageIndex>);
static_assert(kTakesOnly<decltype(Step::gaps), GapIndex>);
static_assert(kTakesOnly<decltype(Problem::values), MovedIndex>);
static_assert(kTakesOnly<decltype(Problem::recipes), RecipeIndex>);
static_assert(kTakesOnly<decltype(Problem::positions), PositionIndex>);
static_assert(kTakesOnly<decltype(Problem::slots), SlotIndex>);
static_assert(kTakesOnly<decltype(Problem::lists), ListIndex>);
static_assert(kTakesOnly<decltype(Problem::made), MadeIndex>);
static_assert(kTakesOnly<decltype(Choice::after), SlotIndex>);
static_assert(kTakesOnly<decltype(Choice::again), MovedIndex>);
static_assert(kTakesOnly<decltype(Record::happenings), HappeningIndex>);
static_assert(kTakesOnly<decltype(Record::stays), StayIndex>);

// A position fills one cache line, because the search goes through all positions again and again.
static_assert(sizeof(Problem::Position) == 64);

}  // namespace
}  // namespace ullage::plan
