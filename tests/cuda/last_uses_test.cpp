// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/last_uses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

namespace ullage::cuda {
namespace {

using Point = LastUses::Point;

TEST(LastUses, KnowsNothingAtFirst) {
  const LastUses uses;
  EXPECT_EQ(uses.last(Address{100}, Bytes{1}), std::nullopt);
}

TEST(LastUses, SaysTheLatestOfAllBytesAskedFor) {
  LastUses uses;
  uses.used(Address{0}, Bytes{100}, 3);
  uses.used(Address{20}, Bytes{30}, 7);
  EXPECT_EQ(uses.last(Address{0}, Bytes{20}), 3u);
  EXPECT_EQ(uses.last(Address{0}, Bytes{21}), 7u);
  EXPECT_EQ(uses.last(Address{50}, Bytes{50}), 3u);
  EXPECT_EQ(uses.last(Address{50}, Bytes{51}), std::nullopt) << "the last byte is not known";
  uses.used(Address{0}, Bytes{100}, 1);  // as after the pages were mapped anew
  EXPECT_EQ(uses.last(Address{0}, Bytes{100}), 1u);
}

// Compares with an array that has a point for each byte.
TEST(LastUses, IsRightForRandomRanges) {
  std::mt19937_64 random(11);
  LastUses uses;
  std::array<std::optional<Point>, 64> bytes;
  for (Point point = 1; point < 20000; ++point) {
    const std::uint64_t begin = random() % bytes.size();
    const std::uint64_t size = 1 + random() % (bytes.size() - begin);
    if (random() % 2 == 0) {
      const Point at = random() % point;
      uses.used(Address{begin}, Bytes{size}, at);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), size, at);
      continue;
    }
    std::optional<Point> expected = 0;
    for (std::uint64_t i = begin; i < begin + size; ++i)
      expected = expected && bytes[i] ? std::optional(std::max(*expected, *bytes[i])) : std::nullopt;
    ASSERT_EQ(uses.last(Address{begin}, Bytes{size}), expected) << begin << " " << size;
    if (point % 500 == 0) {
      uses = LastUses();
      bytes.fill(std::nullopt);
    }
  }
}

}  // namespace
}  // namespace ullage::cuda
