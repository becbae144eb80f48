// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/value_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ullage::cli {
namespace {

using BytesOf = std::function<std::optional<std::uint64_t>(std::int64_t)>;

std::vector<std::int64_t> one_to(std::int64_t last) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(last));
  std::iota(values.begin(), values.end(), 1);
  return values;
}

// The value found, as text with what it is: "largest 23", "smallest 7", "none". Counts the runs.
struct Answer {
  std::string text;
  int runs = 0;
};

Answer search(const std::vector<std::int64_t>& values, std::int64_t asked, std::uint64_t room, const BytesOf& bytes) {
  const auto at = [&](std::int64_t value) {
    const std::optional<std::uint64_t> took = bytes(value);
    return took ? ValueTried{*took <= room, Bytes{*took}} : ValueTried{};
  };
  std::set<std::int64_t> seen = {asked};
  Answer answer;
  const auto first = static_cast<std::size_t>(std::ranges::find(values, asked) - values.begin());
  const auto found = search_values(values, first, at(asked), Bytes{room}, [&](std::int64_t value) {
    EXPECT_TRUE(seen.insert(value).second) << value << " was run twice";
    ++answer.runs;
    return at(value);
  });
  answer.text =
      found ? (found->falls ? "smallest " : "largest ") + std::to_string(values[found->index]) : std::string("none");
  return answer;
}

std::optional<std::uint64_t> rises(std::int64_t value) { return 100 + 10 * static_cast<std::uint64_t>(value); }
std::optional<std::uint64_t> falls(std::int64_t value) { return 100 + 10 * static_cast<std::uint64_t>(65 - value); }

TEST(ValueSearch, FindsTheLargestWhereALargerValueTakesMore) {
  for (std::int64_t border = 1; border <= 64; ++border) {
    for (std::int64_t asked = 1; asked <= 64; ++asked) {
      const Answer answer = search(one_to(64), asked, *rises(border), rises);
      ASSERT_EQ(answer.text, "largest " + std::to_string(border)) << "asked for " << asked;
      ASSERT_LE(answer.runs, 14) << "asked for " << asked << ", border " << border;
      ASSERT_EQ(search(one_to(64), asked, *rises(border) + 9, rises).text, answer.text) << "asked for " << asked;
    }
  }
}

TEST(ValueSearch, FindsTheSmallestWhereALargerValueTakesLess) {
  for (std::int64_t border = 1; border <= 64; ++border) {
    for (std::int64_t asked = 1; asked <= 64; ++asked) {
      const Answer answer = search(one_to(64), asked, *falls(border), falls);
      ASSERT_EQ(answer.text, "smallest " + std::to_string(border)) << "asked for " << asked;
      ASSERT_LE(answer.runs, 16) << "asked for " << asked << ", border " << border;
    }
  }
}

TEST(ValueSearch, StopsEarlyWhereNothingFits) {
  for (const std::int64_t asked : {1, 2, 37, 64}) {
    EXPECT_EQ(search(one_to(64), asked, 50, rises).text, "none") << asked;
    EXPECT_EQ(search(one_to(64), asked, 50, falls).text, "none") << asked;
    EXPECT_LE(search(one_to(64), asked, 50, rises).runs, 6) << "upwards bytes only grow: " << asked;
  }
}

TEST(ValueSearch, SearchesBothWaysWhereRunsThatDoNotFitSayNoBytes) {
  const auto refused_below_50 = [](std::int64_t value) { return value < 50 ? std::nullopt : falls(value); };
  const auto refused_above_50 = [](std::int64_t value) { return value > 50 ? std::nullopt : rises(value); };
  for (const std::int64_t asked : {1, 9, 49, 50, 51, 64}) {
    EXPECT_EQ(search(one_to(64), asked, 10'000, refused_below_50).text, "smallest 50") << asked;
    EXPECT_EQ(search(one_to(64), asked, 10'000, refused_above_50).text, "largest 50") << asked;
  }
}

TEST(ValueSearch, TakesTheLargestWhereTheValueChangesNothing) {
  const auto same = [](std::int64_t) { return std::optional<std::uint64_t>(100); };
  for (const std::int64_t asked : {1, 9, 64}) {
    EXPECT_EQ(search(one_to(64), asked, 100, same).text, "largest 64") << asked;
    EXPECT_EQ(search(one_to(64), asked, 99, same).text, "none") << asked;
  }
}

TEST(ValueSearch, DoublesWhereValuesAreFarApart) {
  const std::vector<std::int64_t> sides = {8, 16, 32, 64, 128, 256, 512, 1024};
  const auto quadratic = [](std::int64_t side) { return std::optional(static_cast<std::uint64_t>(side * side)); };
  const Answer answer = search(sides, 64, 128 * 128, quadratic);
  EXPECT_EQ(answer.text, "largest 128");
  EXPECT_EQ(answer.runs, 2) << "1024 would take long";
}

// At 32 a kernel takes another path, with scratch.
TEST(ValueSearch, IsNotMisledByABumpOrADip) {
  const auto bump = [](std::int64_t value) { return *rises(value) + (value == 32 ? 400 : 0); };
  const auto dip = [](std::int64_t value) { return *rises(value) - (value == 32 ? 250 : 0); };
  const auto of = [](const auto& bytes) {
    return [bytes](std::int64_t value) { return std::optional<std::uint64_t>(bytes(value)); };
  };
  EXPECT_EQ(search(one_to(64), 32, 900, of(bump)).text, "largest 64");
  EXPECT_EQ(search(one_to(64), 32, 820, of(bump)).text, "largest 64") << "32 fits, and 64";
  EXPECT_EQ(search(one_to(64), 32, 600, of(bump)).text, "largest 31");
  EXPECT_EQ(search(one_to(64), 32, 400, of(dip)).text, "largest 32") << "33 does not";
}

// As the rows of a tile: multiples of four take a little less than the row before.
TEST(ValueSearch, LooksALittleFurtherWhereBytesDip) {
  const auto rows = [](std::int64_t value) {
    return std::optional(100'000 + 400 * static_cast<std::uint64_t>(value) - (value % 4 == 0 ? 1300 : 0));
  };
  for (const std::int64_t asked : {1, 32, 45, 64}) {
    EXPECT_EQ(search(one_to(64), asked, *rows(48), rows).text, "largest 48") << "45, 46 and 47 take more: " << asked;
  }
  const auto falling = [&](std::int64_t value) { return rows(65 - value); };
  for (const std::int64_t asked : {1, 20, 64}) {
    EXPECT_EQ(search(one_to(64), asked, *rows(48), falling).text, "smallest 17") << asked;
  }
}

TEST(ValueSearch, OneValueIsTheAnswerOrNone) {
  EXPECT_EQ(search({7}, 7, 170, rises).text, "largest 7");
  EXPECT_EQ(search({7}, 7, 169, rises).text, "none");
}

}  // namespace
}  // namespace ullage::cli
