// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/terminal/terminal_text.h"

#include "ullage/report/terminal/terminal_bar.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ullage::report {
namespace {

TEST(TerminalText, CleansControlsDirectionsAndWhatIsNotUtf8) {
  EXPECT_EQ(clean("a\tb\nc", true), "a b c");
  EXPECT_EQ(clean("\x1b[31mred", true), "?[31mred");
  EXPECT_EQ(clean("caf\u00e9 \u4e2d", true), "caf\u00e9 \u4e2d");
  EXPECT_EQ(clean("caf\u00e9", false), "caf?");
  EXPECT_EQ(clean("\u202ex\u200b\u2066\ufeff", true), "?x???");
  EXPECT_EQ(clean("\xc0\xaf\xed\xa0\x80\xf5\x80", true), "?????");  // overlong, surrogate, above U+10FFFF
  EXPECT_EQ(clean("\xe4\xb8", true), "??");                         // cut off
}

TEST(TerminalText, CountsColumns) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("\u4e2d\u6587"), 4u);
  EXPECT_EQ(columns("e\u0301"), 1u);
  EXPECT_EQ(columns("\U0001F600"), 2u);
}

TEST(TerminalText, ClipsAtEitherEnd) {
  EXPECT_EQ(clip("abcdef", 6), "abcdef");
  EXPECT_EQ(clip("abcdefg", 6), "abc...");
  EXPECT_EQ(clip("abcdefg", 6, true), "...efg");
  EXPECT_EQ(clip("\u4e2d\u6587\u4e2d\u6587", 6), "\u4e2d...");
  EXPECT_EQ(clip("\u4e2d\u6587\u4e2d\u6587", 6, true), "...\u6587");
  EXPECT_EQ(clip("abcdef", 2), "ab");
}

TEST(TerminalText, WrapsAtBlanksAndCutsWhatHasNone) {
  EXPECT_EQ(wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("one two", 7), (std::vector<std::string>{"one two"}));
  EXPECT_EQ(wrap("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("", 3), (std::vector<std::string>{""}));
  EXPECT_EQ(wrap("\u4e2d\u6587\u4e2d", 3), (std::vector<std::string>{"\u4e2d", "\u6587", "\u4e2d"}));
}

TEST(TerminalBar, CellsAddUpAndNothingIsLost) {
  const std::vector<std::vector<Bytes>> cases = {
      {1_GiB, 1_B, 0_B, 3_GiB}, {1_B}, {1_B, 1_B, 1_B}, {Bytes{UINT64_MAX / 3}, Bytes{UINT64_MAX / 3}, 5_GiB}};
  for (const std::vector<Bytes>& parts : cases) {
    const std::vector<std::size_t> cells = bar_cells(parts, 78);
    EXPECT_EQ(std::accumulate(cells.begin(), cells.end(), std::size_t{}), 78u);
    for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(cells[i] > 0, parts[i] > 0_B);
  }
  EXPECT_EQ(bar_cells({1_GiB, 3_GiB}, 8), (std::vector<std::size_t>{2, 6}));
  EXPECT_EQ(bar_cells({0_B, 0_B}, 8), (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(bar_cells({1_B, 1_B, 1_B}, 2), (std::vector<std::size_t>{1, 1, 1}));
}

TEST(TerminalBar, SharesNeverClaimNothingOrAllWrongly) {
  EXPECT_EQ(share(1_B, 1_GiB), "<1 %");
  EXPECT_EQ(share(1_GiB - 1_B, 1_GiB), "99 %");
  EXPECT_EQ(share(1_GiB, 1_GiB), "100 %");
  EXPECT_EQ(share(0_B, 1_GiB), "0 %");
  EXPECT_EQ(share(0_B, 0_B), "-");
}

}  // namespace
}  // namespace ullage::report
