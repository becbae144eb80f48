// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage {
namespace {

TEST(Utf8, TakesTheFirstCharacterOfEachLength) {
  const auto is = [](std::string_view text, std::uint32_t code, std::size_t length) {
    const Utf8Character one = first_utf8(text);
    EXPECT_EQ(one.code, code);
    EXPECT_EQ(one.length, length);
  };
  is("az", 'a', 1);
  is(std::string_view("\0", 1), 0, 1);
  is("\xc2\x80z", 0x80, 2);
  is("\xe0\xa0\x80z", 0x800, 3);
  is("\xef\xbf\xbf", 0xffff, 3);
  is("\xf0\x90\x80\x80z", 0x10000, 4);
  is("\xf4\x8f\xbf\xbf", 0x10ffff, 4);
}

TEST(Utf8, KnowsSurrogates) {
  EXPECT_TRUE(first_utf8("\xed\xa0\x80").surrogate());
  EXPECT_TRUE(first_utf8("\xed\xbf\xbf").surrogate());
  EXPECT_FALSE(first_utf8("\xed\x9f\xbf").surrogate());
  EXPECT_FALSE(first_utf8("\xee\x80\x80").surrogate());
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const std::string text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\xc2", "\xe2\x82", "\xc2z", "\xe2z\xac", "\xf0\x90\x80z"}) {
    EXPECT_EQ(first_utf8(text).length, 0u) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace ullage
