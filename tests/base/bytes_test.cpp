// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/bytes.h"

#include "ullage/base/ids.h"

#include <gtest/gtest.h>

namespace ullage {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};

// Each unit type combines only with what makes sense: the negated lines must not compile.
static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, EventId>);
static_assert(!Addable<Bytes, Seconds>);
static_assert(!Addable<EventId, EventId>);
static_assert(!Addable<Address, Address>);
static_assert(!Addable<Bytes, int>);
static_assert(Comparable<EventId, EventId>);
static_assert(!Comparable<EventId, OpId>);
static_assert(!Comparable<Bytes, Address>);

TEST(Bytes, ArithmeticIsChecked) {
  EXPECT_EQ(Bytes{3} + Bytes{4}, Bytes{7});
  EXPECT_THROW(Bytes{UINT64_MAX} + Bytes{1}, ContractError);
  EXPECT_THROW(Bytes{1} - Bytes{2}, ContractError);
  EXPECT_THROW(Bytes{UINT64_MAX / 2} * 3, ContractError);
  EXPECT_THROW(Bytes{1} / 0, ContractError);
  EXPECT_EQ(saturating_sub(Bytes{1}, Bytes{2}), Bytes{0});
}

TEST(Bytes, RoundsToPowersOfTwo) {
  EXPECT_EQ(round_up(Bytes{1}, 4_KiB), 4_KiB);
  EXPECT_EQ(round_up(4_KiB, 4_KiB), 4_KiB);
  EXPECT_EQ(round_down(Bytes{8191}, 4_KiB), 4_KiB);
  EXPECT_THROW(round_up(Bytes{1}, Bytes{3}), ContractError);
  EXPECT_THROW(round_up(Bytes{UINT64_MAX}, 4_KiB), ContractError);
}

TEST(Bytes, AddressesDifferByBytes) {
  EXPECT_EQ((Address{100} + Bytes{28}) - Address{28}, Bytes{100});
  EXPECT_THROW(Address{1} - Address{2}, ContractError);
}

}  // namespace
}  // namespace ullage
