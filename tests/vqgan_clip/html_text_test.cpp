// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/html_text.h"

#include "vqgan_clip/html_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

TEST(HtmlText, ResolvesEachReferenceOnce) {
  const std::pair<const char*, const char*> cases[] = {
      {"a &amp; b", "a & b"},
      {"&amp;amp;", "&amp;"},
      {"caf&eacute;", "caf\u00e9"},
      {"&EACUTE; &Eacute;", "&EACUTE; \u00c9"},
      {"&hearts;&euro;", "\u2665\u20ac"},
      {"&apos;&quot;", "'\""},
      {"&#233;&#xe9;&#XE9;", "\u00e9\u00e9\u00e9"},
      {"&#128512;", "\U0001f600"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(unescape_html(text), wanted) << text;
}

TEST(HtmlText, NamesOfLatin1NeedNoSemicolon) {
  EXPECT_EQ(unescape_html("fish&ampchips, &copy2021"), "fish&chips, \u00a92021");
  EXPECT_EQ(unescape_html("&notin; &notit;"), "\u2209 \u00acit;");
  EXPECT_EQ(unescape_html("&euro &apos"), "&euro &apos");
  EXPECT_EQ(unescape_html("&copy2021 &copy; &#233 &#233;", References::Ended), "&copy2021 \u00a9 &#233 \u00e9");
}

TEST(HtmlText, NumbersOfNoCharacterAreHtml5s) {
  const std::pair<const char*, const char*> cases[] = {
      {"&#0;", "\ufffd"},
      {"&#xd800;", "\ufffd"},
      {"&#x110000;", "\ufffd"},
      {"&#99999999999999999999;", "\ufffd"},
      {"&#128;", "\u20ac"},
      {"&#159;", "\u0178"},
      {"&#129;", "\u0081"},
      {"a&#1;b&#xfffe;c&#x1ffff;", "abc"},
      {"a&#xfdd0;b", "ab"},
      {"&#10;", "\n"},
      {"&#233 &#xe9", "\u00e9 \u00e9"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(unescape_html(text), wanted) << text;
}

TEST(HtmlText, WhatIsNoReferenceStays) {
  for (const char* text : {"", "&", "&&", "a & b", "&;", "&#;", "&#x;", "&#xg;", "&nosuchname;", "&a"}) {
    EXPECT_EQ(unescape_html(text), text);
  }
}

TEST(HtmlText, NamesAreInOrder) {
  EXPECT_TRUE(std::is_sorted(kHtmlNames.begin(), kHtmlNames.end(),
                             [](const HtmlName& a, const HtmlName& b) { return a.name < b.name; }));
  EXPECT_EQ(kHtmlNames.size(), 259u);
}

}  // namespace
}  // namespace ullage::vqgan_clip
