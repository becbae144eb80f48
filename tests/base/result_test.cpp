// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/result.h"

#include <gtest/gtest.h>

namespace ullage {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  EXPECT_THROW((void)good.error(), ContractError);

  const Result<int> bad = Error{Error::Kind::BadFile, "expected 8 bytes, found 3", "a.png:12"};
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().text(), "a.png:12: expected 8 bytes, found 3");
  EXPECT_THROW((void)bad.value(), ContractError);
}

TEST(Result, TextWithoutAPlaceIsTheMessageAlone) {
  EXPECT_EQ((Error{Error::Kind::System, "no room", ""}.text()), "no room");
}

Result<std::string> half_of(int value) {
  if (value % 2 != 0) return Error{Error::Kind::BadArgument, "an odd number has no half", std::to_string(value)};
  return std::to_string(value / 2);
}

Result<std::string> quarter_of(int value, int& calls) {
  ULLAGE_TRY(half_of(value));
  ULLAGE_TRY_VALUE(const std::string half, half_of((++calls, value)));
  std::string quarter;
  ULLAGE_TRY_VALUE(quarter, half_of(std::stoi(half)));
  ++calls;
  return quarter;
}

TEST(Result, TryPassesTheErrorOnAndTakesTheValueOnce) {
  int calls = 0;
  EXPECT_EQ(quarter_of(12, calls).value(), "3");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(quarter_of(7, calls).error().where, "7");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(quarter_of(6, calls).error().where, "3");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace ullage
