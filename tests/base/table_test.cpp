// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ullage {
namespace {

using Row = Id<struct RowTag, std::int32_t>;
using Seat = Id<struct SeatTag, std::int32_t>;
using Rows = Table<Row, std::string>;

template <class Index, class Items>
concept IndexOf = requires(Items& items, Index index) {
  items[index];
};

// A table takes only its own ids as an index: the negated lines must not compile.
static_assert(IndexOf<Row, Rows>);
static_assert(IndexOf<Row, const Rows>);
static_assert(!IndexOf<Seat, Rows>);
static_assert(!IndexOf<int, Rows>);
static_assert(!IndexOf<std::size_t, Rows>);
static_assert(IndexOf<IdRange<Row>, const Rows>);
static_assert(!IndexOf<IdRange<Seat>, const Rows>);
static_assert(!std::is_convertible_v<int, Row> && !std::is_convertible_v<Row, Seat>);
static_assert(!std::is_assignable_v<Row&, Seat>);

// Ids and tables are no larger than the types that they wrap.
static_assert(sizeof(Row) == sizeof(std::int32_t) && std::is_trivially_copyable_v<Row>);
static_assert(sizeof(Rows) == sizeof(std::vector<std::string>));

TEST(Table, GivesIdsInTheOrderOfItsItems) {
  Rows rows;
  const Row first = rows.push_back("a");
  const Row second = rows.push_back("b");
  EXPECT_EQ(rows[first], "a");
  EXPECT_EQ(rows[second], "b");
  EXPECT_EQ(rows.next_id(), Row{2});
  EXPECT_TRUE(rows.has(second));
  EXPECT_FALSE(rows.has(rows.next_id()));
  EXPECT_FALSE(rows.has(Row{-1}));
  EXPECT_EQ(rows.id_of(rows.begin() + 1), second);
}

TEST(Table, WalksItsIdsBothWays) {
  const Rows rows{"a", "b", "c"};
  std::string there, back;
  for (const Row row : rows.ids()) there += rows[row];
  for (const Row row : rows.ids().backwards()) back += rows[row];
  EXPECT_EQ(there, "abc");
  EXPECT_EQ(back, "cba");
  for (const Row row : Rows().ids()) ADD_FAILURE() << row.value;
  for (const Row row : Rows().ids().backwards()) ADD_FAILURE() << row.value;
}

TEST(Table, GivesAPartByARangeOfIds) {
  const Rows rows{"a", "b", "c"};
  const IdRange<Row> range{Row{1}, Row{3}};
  std::string part;
  for (const std::string& row : rows[range]) part += row;
  EXPECT_EQ(part, "bc");
  EXPECT_EQ(range.size(), 2u);
  EXPECT_TRUE(rows[IdRange<Row>{}].empty());
}

TEST(Table, HoldsBitsToo) {
  Table<Seat, bool> taken(3, false);
  taken[Seat{1}] = true;
  EXPECT_EQ(taken, (Table<Seat, bool>{false, true, false}));
}

}  // namespace
}  // namespace ullage
