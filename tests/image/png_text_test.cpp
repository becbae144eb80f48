// SPDX-License-Identifier: Apache-2.0
#include "image/png_text.h"

#include <gtest/gtest.h>

namespace ullage::image::test {
namespace {

TEST(StoredText, IsLatin1WhereThatHasAllCharacters) {
  const StoredText stored = stored_text("caf\xC3\xA9 \xC3\xBF\n\xC2\x80");
  EXPECT_TRUE(stored.latin1);
  EXPECT_EQ(stored.bytes, "caf\xE9 \xFF\n\x80");
  EXPECT_TRUE(stored_text("").latin1);
}

TEST(StoredText, IsUtf8WhereACharacterIsNotLatin1) {
  for (const std::string text :
       {"\xC4\x80", "a \xE2\x99\xA5", "\xF0\x9F\x9A\x80 caf\xC3\xA9", "\xEF\xBF\xBD", "\xED\x9F\xBF"}) {
    const StoredText stored = stored_text(text);
    EXPECT_FALSE(stored.latin1) << text;
    EXPECT_EQ(stored.bytes, text);
  }
}

TEST(StoredText, ReplacesWhatIsNoUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(stored_text("a\xFF"
                        "b")
                .bytes,
            "a" + mark + "b");
  EXPECT_EQ(stored_text("\xC3").bytes, mark);                                   // cut short
  EXPECT_EQ(stored_text("\xC3(").bytes, mark + "(");                            // no second byte
  EXPECT_EQ(stored_text("\xC1\xA1").bytes, mark + mark);                        // an 'a' in two bytes
  EXPECT_EQ(stored_text("\xE0\x81\xA1").bytes, mark + mark + mark);             // in three
  EXPECT_EQ(stored_text("\xED\xA0\x80").bytes, mark + mark + mark);             // a surrogate
  EXPECT_EQ(stored_text("\xF4\x90\x80\x80").bytes, mark + mark + mark + mark);  // past the last character
  EXPECT_EQ(stored_text("\x80").bytes, mark);
  EXPECT_EQ(stored_text(std::string("a\0b", 3)).bytes, "a" + mark + "b");
}

TEST(PngKeyword, IsShortPrintableAndHasNoStraySpaces) {
  for (const std::string good : {"comment", "Creation Time", "a", "~"}) EXPECT_TRUE(is_png_keyword(good)) << good;
  EXPECT_TRUE(is_png_keyword(std::string(79, 'a')));
  for (const std::string bad : {"", " a", "a ", "a  b", "a\n", "caf\xE9", "\x7F"})
    EXPECT_FALSE(is_png_keyword(bad)) << bad;
  EXPECT_FALSE(is_png_keyword(std::string(80, 'a')));
}

}  // namespace
}  // namespace ullage::image::test
