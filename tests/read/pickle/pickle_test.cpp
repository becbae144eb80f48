// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/printable.h"
#include "ullage/read/pickle/pickle.h"

#include "read/pickle_text.h"
#include "seeds.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ullage::read {
namespace {

using Kind = PickleValue::Kind;

class PickleTest : public testing::Test {
 protected:
  // Parses a file that consists of `value`, and returns the root.
  PickleValue read(const std::string& value) {
    file_ = pickled::whole(value);
    auto parsed = Pickle::parse(pickled::bytes(file_), "x");
    EXPECT_TRUE(parsed) << parsed.error().text();
    pickle_ = std::move(parsed).value();
    EXPECT_EQ(pickle_.end(), file_.size());
    return pickle_.root();
  }
  std::span<const PickleValue> items(const std::string& value) { return pickle_.items(read(value)); }

  std::string file_;
  Pickle pickle_;
};

TEST_F(PickleTest, ReadsIntegersOfEverySize) {
  const std::pair<std::string, std::int64_t> cases[] = {
      {std::string("K\xff"), 255},
      {std::string("M\xff\xff"), 65535},
      {std::string("J\xff\xff\xff\xff"), -1},
      {std::string("J\0\0\0\x80", 5), INT32_MIN},
      {std::string("\x8a\0", 2), 0},
      {std::string("\x8a\1\xff"), -1},
      {std::string("\x8a\3\1\2\xff"), -65023},
      {pickled::integer(INT64_MAX), INT64_MAX},
      {pickled::integer(INT64_MIN), INT64_MIN},
      {pickled::integer((std::int64_t{1} << 59) - 1), (std::int64_t{1} << 59) - 1},
      {pickled::integer(std::int64_t{1} << 59), std::int64_t{1} << 59},
      {pickled::integer(-(std::int64_t{1} << 59) - 1), -(std::int64_t{1} << 59) - 1},
      {"\x8b" + pickled::little(9, 4) + pickled::little(7, 8) + std::string(1, '\0'), 7},
  };
  for (const auto& [written, value] : cases) {
    const PickleValue root = read(written);
    EXPECT_EQ(pickle_.signed_integer(root), value);
    EXPECT_EQ(pickle_.unsigned_integer(root), value < 0 ? std::nullopt : std::optional<std::uint64_t>(value));
  }
}

TEST_F(PickleTest, TellsIntegersBeyond64BitsFromThoseWithin) {
  const PickleValue largest = read("\x8a\x09" + pickled::little(UINT64_MAX, 8) + std::string(1, '\0'));
  EXPECT_EQ(pickle_.unsigned_integer(largest), UINT64_MAX);
  EXPECT_EQ(pickle_.signed_integer(largest), std::nullopt);
  const PickleValue beyond = read("\x8a\x09" + pickled::little(0, 8) + "\1");
  EXPECT_EQ(pickle_.unsigned_integer(beyond), std::nullopt);
  EXPECT_EQ(pickle_.signed_integer(beyond), std::nullopt);
  const PickleValue below = read("\x8a\x09" + pickled::little(INT64_MAX, 8) + "\xff");
  EXPECT_EQ(pickle_.signed_integer(below), std::nullopt);
}

TEST_F(PickleTest, ReadsStringsAndFloats) {
  EXPECT_EQ(pickle_.string(read("\x8c\2hi")), "hi");
  EXPECT_EQ(pickle_.string(read(pickled::text("caf\xc3\xa9"))), "caf\xc3\xa9");
  EXPECT_EQ(pickle_.string(read("\x8d" + pickled::little(3, 8) + "abc")), "abc");
  EXPECT_EQ(pickle_.string(read(pickled::text(""))), "");
  EXPECT_EQ(pickle_.number(read(pickled::real())), 1.5);
  EXPECT_EQ(pickle_.signed_integer(pickle_.root()), std::nullopt);
}

TEST_F(PickleTest, ReadsTuplesOfEveryForm) {
  EXPECT_EQ(items(")").size(), 0u);
  EXPECT_EQ(items("K\1\x85").size(), 1u);
  const auto two = items("K\1K\2\x86");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].small_integer(), 1);
  EXPECT_EQ(two[1].small_integer(), 2);
  EXPECT_EQ(items("NNN\x87").size(), 3u);
  EXPECT_EQ(items(pickled::tuple({"N", "N", "N", "K\7"})).back().small_integer(), 7);
  EXPECT_EQ(pickle_.root().kind(), Kind::Tuple);
}

TEST_F(PickleTest, ListsGrowInPieces) {
  // A list gets 1 to 3. Each time another list is then built right behind it, so that it must move when it grows again.
  const std::string neighbour = "](NNNNe0", first = "h" + std::string(1, '\0');
  const auto grown = items("]\x94(K\1K\2K\3e" + neighbour + first + "K\4a0" + neighbour + first + "(K\5K\6e0");
  ASSERT_EQ(grown.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(grown[i].small_integer(), std::int64_t(i + 1));
}

TEST_F(PickleTest, ListsFilledAlikeGrowApart) {
  const std::string four = "(K\1K\2K\3K\4e";
  // A list holds two equal lists. The first gets a 5, the second a 6, then the first a 7.
  const std::string all = "](]\x94" + four + "]\x94" + four + "e";
  const std::string grown =
      all + "h" + std::string(1, '\0') + "K\5a0" + "h\1K\6a0" + "h" + std::string(1, '\0') + "K\7a0";
  const auto lists = items(grown);
  ASSERT_EQ(lists.size(), 2u);
  const auto first = pickle_.items(lists[0]), second = pickle_.items(lists[1]);
  ASSERT_EQ(first.size(), 6u);
  ASSERT_EQ(second.size(), 5u);
  EXPECT_EQ(first[3].small_integer(), 4);
  EXPECT_EQ(first[4].small_integer(), 5);
  EXPECT_EQ(first[5].small_integer(), 7);
  EXPECT_EQ(second[3].small_integer(), 4);
  EXPECT_EQ(second[4].small_integer(), 6);
}

// Lists of a few kinds in random order, with the same bytes again and again. Some change what the memo has, some are
// filled in two pieces, and some only begin like a list.
TEST_F(PickleTest, ListsOfFetchesHaveWhatTheMemoHasThen) {
  for (std::uint64_t seed = 0; seed < seeds(200); ++seed) {
    std::minstd_rand random(unsigned(seed) + 1);
    const auto below = [&](unsigned count) { return unsigned(random() % count); };
    std::string program = "(";
    std::vector<std::int64_t> memo;
    for (unsigned i = 0; i < 9; ++i) {
      program += "K" + std::string(1, char(i)) + "q" + std::string(1, char(i)) + "0";
      memo.push_back(i);
    }
    std::vector<std::vector<unsigned>> kinds(6);
    for (auto& kind : kinds) {
      kind.assign({0, 1, 2});  // all begin with the same bytes
      for (unsigned more = 1 + below(seed % 2 == 0 ? 6 : 60); more > 0; --more) kind.push_back(below(9));
    }
    const auto fetched = [&](unsigned entry, std::size_t at) {
      return at % 2 == 0 ? "h" + std::string(1, char(entry)) : "j" + pickled::little(entry, 4);
    };
    std::vector<std::vector<std::int64_t>> wanted;
    for (unsigned n = 0; n < 60; ++n) {
      const auto& kind = kinds[below(6)];
      std::string bytes;
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < kind.size(); ++i) bytes += fetched(kind[i], i), values.push_back(memo[kind[i]]);
      const unsigned how = below(20);
      if (how == 0) {  // an entry gets another value
        const unsigned entry = below(9);
        memo[entry] = 100 + n;
        program += "K" + std::string(1, char(100 + n)) + "q" + std::string(1, char(entry)) + "0";
      }
      if (how == 1) {  // a tuple, with an empty list below it
        program += "](" + bytes + "t";
        wanted.emplace_back();
      } else if (how == 2) {  // twice into one list
        program += "](" + bytes + "e(" + bytes + "e";
        values.insert(values.end(), values.begin(), values.end());
      } else if (how == 0) {
        continue;
      } else {
        program += "](" + bytes + "e";
      }
      wanted.push_back(values);
    }
    const auto lists = items(program + "t");
    ASSERT_EQ(lists.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::vector<std::int64_t> got;
      for (const PickleValue one : pickle_.items(lists[i])) got.push_back(one.small_integer());
      ASSERT_EQ(got, wanted[i]) << "list " << i << " of seed " << seed;
    }
  }
}

TEST_F(PickleTest, DictsKeepKeysAndValuesInTurn) {
  const auto pairs = items(pickled::dict({{"a", "K\1"}, {"b", "K\2"}}) + pickled::text("c") + "K\3s");
  ASSERT_EQ(pairs.size(), 6u);
  EXPECT_EQ(pickle_.string(pairs[4]), "c");
  EXPECT_EQ(pairs[5].small_integer(), 3);
}

TEST_F(PickleTest, WhatIsSharedStaysShared) {
  // Entered into the memo by MEMOIZE, BINPUT, LONG_BINPUT and PUT (decimal digits).
  for (const std::string& put :
       {std::string("\x94"), std::string("q\0", 2), std::string("r\0\0\0\0", 5), std::string("p0\n")}) {
    for (const std::string& get : {std::string("h\0", 2), std::string("j\0\0\0\0", 5), std::string("g0\n")}) {
      const auto all = items("(}" + put + get + get + "t");
      ASSERT_EQ(all.size(), 3u);
      EXPECT_EQ(all[0], all[1]);
      EXPECT_EQ(all[0], all[2]);
      EXPECT_EQ(pickle_.container_count(), 2u);
    }
  }
}

TEST_F(PickleTest, PopsValuesAndMarks) {
  EXPECT_EQ(read("K\1K\2"
                 "0")
                .small_integer(),
            1);
  EXPECT_EQ(read("K\1(0").small_integer(), 1);
}

TEST_F(PickleTest, CyclesAreHarmless) {
  // A list that holds itself.
  const auto one = items("]\x94h" + std::string(1, '\0') + "a");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0], pickle_.root());
}

TEST_F(PickleTest, BillionLaughsAreRead) {
  // 60 lists, each of which holds the one before ten times: 10^60 elements if they were expanded.
  std::string all = "](NNNNNNNNNNe\x94";
  for (char i = 0; i < 60; ++i) all += "](" + pickled::times(10, "h" + std::string(1, i)) + "e\x94";
  EXPECT_EQ(items(all).size(), 10u);
  EXPECT_EQ(pickle_.container_count(), 61u);
}

TEST_F(PickleTest, DeepNestingNeedsNoStack) {
  const std::size_t deep = 1'000'000;
  read(pickled::times(deep, "]") + pickled::times(deep - 1, "a"));
  EXPECT_EQ(pickle_.container_count(), deep);
}

TEST(Printable, LetsNothingThroughThatSteersATerminalOrIsNoText) {
  EXPECT_EQ(printable("a/b.py", 100), "a/b.py");
  EXPECT_EQ(printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 100), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\x1b[31m\n\x7f", 100), "?[31m??");
  EXPECT_EQ(printable("\xc2\x9b", 100), "?");  // CSI in one character
  EXPECT_EQ(printable("\xff", 100), "\xef\xbf\xbd");
  EXPECT_EQ(printable("\xc3", 100), "\xef\xbf\xbd");
  EXPECT_EQ(printable("\xed\xa0\x80", 100), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(printable("\xc0\xaf", 100), "\xef\xbf\xbd\xef\xbf\xbd");                  // '/' in two bytes
  EXPECT_EQ(printable("abcdef", 4), "abcd...");
  EXPECT_EQ(printable("abc\xc3\xa9", 4), "abc...");
}

}  // namespace
}  // namespace ullage::read
