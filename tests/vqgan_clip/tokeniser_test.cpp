// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/tokeniser.h"

#include "program/temp_folder.h"
#include "read/gzip_text.h"

#include <cstdlib>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

using Ids = std::vector<std::int64_t>;

// A small vocabulary. Its merges have the ids 512 to 517: lo, low, low at a word's end, er at a word's end, lower, ow.
constexpr const char* kLines = "#version: 0.2\nl o\nlo w\nlo w</w>\ne r</w>\nlow er</w>\no w\n";
constexpr std::int64_t kLower = 516, kStart = 518, kEnd = 519;

Tokeniser small() {
  auto made = Tokeniser::read(kLines, "v.txt");
  EXPECT_TRUE(made) << made.error().text();
  return std::move(*made);
}

std::int64_t entry(char letter) { return letter - '!'; }

TEST(Tokeniser, MakesThePairsOfLeastRankFirst) {
  const Tokeniser tokeniser = small();
  EXPECT_EQ(*tokeniser.encode("low"), (Ids{514}));
  EXPECT_EQ(*tokeniser.encode("Lower"), (Ids{kLower}));
  EXPECT_EQ(*tokeniser.encode("lowlo"), (Ids{513, entry('l'), entry('o') + 256}));
  EXPECT_EQ(*tokeniser.encode("slower"), (Ids{entry('s'), kLower}));
  EXPECT_EQ(*tokeniser.encode("lololow"), (Ids{512, 512, 514}));
}

TEST(Tokeniser, KnowsEveryByte) {
  const Tokeniser tokeniser = small();
  EXPECT_EQ(*tokeniser.encode("!"), (Ids{256}));
  EXPECT_EQ(*tokeniser.encode("~"), (Ids{93 + 256}));
  // The byte c3 is printable in Latin-1. Its place is 0xc3 - 0xa1 - 1 after the 94 printable bytes of ASCII. The byte
  // a0 is not printable; such bytes (0 to 32, then 127 to 160) follow from 188 on.
  EXPECT_EQ(*tokeniser.encode("\u00e0"), (Ids{94 + 0xc3 - 0xa1 - 1, 188 + 33 + (0xa0 - 127) + 256}));
}

TEST(Tokeniser, PutsTextBetweenItsMarks) {
  const Tokeniser tokeniser = small();
  EXPECT_EQ(tokeniser.vocabulary(), 520);
  EXPECT_EQ(*tokeniser.tokens("low lower", 6), (Ids{kStart, 514, kLower, kEnd, 0, 0}));
  EXPECT_EQ(*tokeniser.tokens("", 3), (Ids{kStart, kEnd, 0}));
  EXPECT_EQ(tokeniser.tokens("low")->size(), 77u);
  EXPECT_EQ(*tokeniser.encode("<|startoftext|>low<|EndOfText|>"), (Ids{kStart, 514, kEnd}));
}

TEST(Tokeniser, SaysOfALongTextHowManyTokensItHas) {
  const Tokeniser tokeniser = small();
  EXPECT_TRUE(tokeniser.tokens("low low", 4));
  EXPECT_EQ(
      tokeniser.tokens("low low low", 4).error().text(),
      "'low low low' is 5 tokens with the marks of start and end, 4 are the most; take out some words, or make two "
      "prompts of it with |");
  const std::string long_text = std::string(59, 'x') + "\u00e9" + std::string(40, 'x');
  EXPECT_NE(tokeniser.tokens(long_text).error().text().find("'" + std::string(59, 'x') + "...' is "),
            std::string::npos);
  EXPECT_NE(tokeniser.tokens(std::string(16'385, 'x')).error().text().find("has 16385 bytes, 16384 are the most"),
            std::string::npos);
}

TEST(Tokeniser, ReadsItsFileZippedOrNot) {
  const test::TempFolder folder;
  test::write_file(folder / "v.txt", kLines);
  test::write_file(folder / "v.txt.gz", read::gzip(kLines));
  for (const char* name : {"v.txt", "v.txt.gz"}) {
    const auto tokeniser = Tokeniser::open(folder / name);
    ASSERT_TRUE(tokeniser) << tokeniser.error().text();
    EXPECT_EQ(*tokeniser->encode("lower"), (Ids{kLower}));
  }
}

TEST(Tokeniser, RefusesFilesThatAreNone) {
  const std::string first = "#version: 0.2\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "v.txt:1: a list of byte pairs begins with its #version"},
      {"l o\n", "v.txt:1: a list of byte pairs begins"},
      {first + "l o\nlo\n", "v.txt:3: this is not a pair"},
      {first + "l o w\n", "v.txt:2: this is not a pair"},
      {first + " o\n", "v.txt:2: this is not a pair"},
      {first + "l \n", "v.txt:2: this is not a pair"},
      {first + "l o\n\nl l\n", "v.txt:3: this is not a pair"},
      {first + "l " + std::string(2000, 'o') + "\n", "v.txt:2: this is not a pair"},
      {first + "l ow\n", "v.txt:2: no line before this one makes 'ow'"},
      {first + "l o\nl l\nlo l\nl ol\n", "v.txt:5: no line before this one makes 'ol'"},
      {first + "l o\nl o\n", "v.txt:3: a line before this one makes 'lo' too"},
  };
  for (const auto& [lines, said] : cases) {
    const auto made = Tokeniser::read(lines, "v.txt");
    ASSERT_FALSE(made) << lines;
    EXPECT_TRUE(made.error().text().starts_with(said)) << made.error().text();
  }
  const auto missing = Tokeniser::open("/nowhere/v.gz");
  EXPECT_EQ(missing.error().kind, Error::Kind::NotFound);
  EXPECT_NE(missing.error().text().find("--vocabulary"), std::string::npos) << missing.error().text();
  const test::TempFolder folder;
  test::write_file(folder / "cut.gz", read::gzip(kLines).substr(0, 30));
  EXPECT_NE(Tokeniser::open(folder / "cut.gz").error().text().find("cut off"), std::string::npos);
}

TEST(Tokeniser, GivesThePublishedTokens) {
  const char* file = std::getenv("ULLAGE_CLIP_VOCABULARY");
  if (file == nullptr) GTEST_SKIP() << "ULLAGE_CLIP_VOCABULARY does not name CLIP's bpe_simple_vocab_16e6.txt.gz";
  const auto tokeniser = Tokeniser::open(file);
  ASSERT_TRUE(tokeniser) << tokeniser.error().text();
  EXPECT_EQ(tokeniser->vocabulary(), 49'408);
  EXPECT_EQ(tokeniser->start(), 49'406);
  const std::pair<const char*, Ids> cases[] = {
      {"a diagram", {320, 22697}},
      {"hello world!", {3306, 1002, 256}},
      {"A painting of an apple in a fruit bowl", {320, 3086, 539, 550, 3055, 530, 320, 5190, 3814}},
      {"it's 2021, na\u00efve caf\u00e9", {585, 568, 273, 271, 273, 272, 267, 1097, 35689, 563, 15304}},
  };
  for (const auto& [text, ids] : cases) EXPECT_EQ(*tokeniser->encode(text), ids) << text;
}

}  // namespace
}  // namespace ullage::vqgan_clip
