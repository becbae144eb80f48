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

}  // namespace
}  // namespace ullage
