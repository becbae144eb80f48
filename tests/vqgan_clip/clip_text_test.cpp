// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/clip_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

TEST(ClipText, IsCleaned) {
  const std::pair<std::string, std::string> cases[] = {
      {"  A  cat\t\n on\u00a0a\u3000mat ", "a cat on a mat"},
      {"\u2018it\u2019s\u2019 \u201cso\u201d", "'it's' \"so\""},
      {"&lsquo;it&rsquo;s&rsquo;", "'it's'"},
      {"a &amp;lt; b", "a < b"},
      {"&copy\u0301; &copy 1", "&cop\u00fd; \u00a9 1"},
      {"&amp;amp;amp;amp;", "&amp;"},
      {"<b> &rsquo;", "<b> \u2019"},  // as ftfy, which unescapes nothing if there is a tag; so the quote stays curly
      {"\u00c9COLE \u00d1 \u0416", "\u00e9cole \u00f1 \u0436"},
      {"cafe\u0301", "caf\u00e9"},
      {"\ufb01sh o\ufb03ce \u0132s \u01c4 \u0149", "fish office ijs d\u017e 'n"},
      {"\uff21\uff22\uff11 \uff76\uff9e", "ab1 \u30ac"},
      {"\u2460\u00bd\u2126", "\u2460\u00bd\u03c9"},  // NFC, not NFKC
      {"\u039f\u03a3 \u039f\u03a3\u0391", "\u03bf\u03c2 \u03bf\u03c3\u03b1"},
      {"\u0130", "i\u0307"},
      {std::string("a\0b\x07"
                   "c\x7f\ufeff\u206a",
                   12),
       "abc"},
      {"caf\u00c3\u00a9", "caf\u00e3\u00a9"},  // not repaired
      {"", ""},
      {" ", ""},
  };
  for (const auto& [text, wanted] : cases) {
    const auto cleaned = clean_text(text);
    ASSERT_TRUE(cleaned) << cleaned.error().text();
    EXPECT_EQ(*cleaned, wanted) << text;
  }
}

TEST(ClipText, ThatIsNoUtf8IsSaidSoWithItsPlace) {
  for (const char* text : {"abc\xff", "abc\xc3", "abc\xed\xa0\x80", "abc\xc0\x80"}) {
    const auto cleaned = clean_text(text);
    ASSERT_FALSE(cleaned);
    EXPECT_NE(cleaned.error().text().find("no UTF-8 from its byte 3 on"), std::string::npos) << cleaned.error().text();
  }
}

TEST(ClipText, IsTakenApart) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"a cat, on 12 mats!?", {"a", "cat", ",", "on", "1", "2", "mats", "!?"}},
      {"it's we're i'll 'sun 'x", {"it", "'s", "we", "'re", "i", "'ll", "'s", "un", "'", "x"}},
      {"!'s", {"!'", "s"}},
      {"\u017f'\u017f", {"\u017f", "'\u017f"}},
      {"na\u00efve\u00bdx\u0301", {"na\u00efve", "\u00bd", "x", "\u0301"}},
      {"<|startoftext|><|endoftext|>s!<|endoftext|>",
       {"<|startoftext|>", "<|endoftext|>", "s", "!<|", "endoftext", "|>"}},
      {"", {}},
  };
  for (const auto& [text, wanted] : cases) {
    std::vector<std::string> words;
    for (const std::string_view word : words_of(text)) words.emplace_back(word);
    EXPECT_EQ(words, wanted) << text;
  }
}

}  // namespace
}  // namespace ullage::vqgan_clip
