// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/size_search.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

// A program that takes 100 bytes and 10 for each of its size.
SizeTried line(std::int64_t size, std::uint64_t room) {
  const auto took = static_cast<std::uint64_t>(100 + 10 * size);
  return {took <= room, Bytes{took}};
}

TEST(SizeSearch, FindsTheLargestThatFitsFromAboveAndFromBelow) {
  for (const std::int64_t first : {1, 7, 89, 90, 91, 4000}) {
    int runs = 0;
    const SizesFound found = search_sizes(first, line(first, 1000), Bytes{1000}, [&](std::int64_t size) {
      ++runs;
      return std::optional(line(size, 1000));
    });
    EXPECT_EQ(found.fits, 90) << first;
    EXPECT_EQ(found.too_large, 91) << first;
    EXPECT_LE(runs, 16) << first;
  }
}

// Two sizes give the line, the third try is the answer, and the fourth shows that the next size is too large.
TEST(SizeSearch, ALineNeedsFourTries) {
  for (const std::int64_t first : {1, 50, 80, 91, 120, 170, 4000}) {
    int tries = 1;
    const SizesFound found = search_sizes(first, line(first, 1000), Bytes{1000}, [&](std::int64_t size) {
      ++tries;
      return std::optional(line(size, 1000));
    });
    EXPECT_EQ(found.fits, 90) << first;
    EXPECT_LE(tries, 4) << first;
  }
}

TEST(SizeSearch, FindsItIfBytesAreKnownOnlyWhereItFits) {
  for (const std::int64_t first : {1, 7, 89, 90, 91, 4000}) {
    const auto run = [](std::int64_t size) {
      SizeTried tried = line(size, 1000);
      if (!tried.fits) tried.took.reset();
      return std::optional(tried);
    };
    const SizesFound found = search_sizes(first, *run(first), Bytes{1000}, run);
    EXPECT_EQ(found.fits, 90) << first;
    EXPECT_EQ(found.too_large, 91) << first;
  }
}

TEST(SizeSearch, StepsThatAreNoLineAreFoundToo) {
  const auto steps = [](std::int64_t size) {
    return SizeTried{size <= 333, Bytes{static_cast<std::uint64_t>(size / 64)}};
  };
  const SizesFound found =
      search_sizes(10, steps(10), Bytes{6}, [&](std::int64_t size) { return std::optional(steps(size)); });
  EXPECT_EQ(found.fits, 333);
  EXPECT_EQ(found.too_large, 334);
}

TEST(SizeSearch, NothingFits) {
  const SizesFound found = search_sizes(8, {false, std::nullopt}, Bytes{1}, [](std::int64_t) {
    return std::optional(SizeTried{false, std::nullopt});
  });
  EXPECT_EQ(found.fits, std::nullopt);
  EXPECT_EQ(found.too_large, 1);
}

TEST(SizeSearch, EndsWithWhatIsKnownWhenARunSaysNothing) {
  int runs = 0;
  const SizesFound found = search_sizes(4, line(4, 1000), Bytes{1000}, [&](std::int64_t size) {
    return ++runs < 2 ? std::optional(line(size, 1000)) : std::nullopt;
  });
  EXPECT_EQ(found.fits, 8);
  EXPECT_EQ(found.too_large, std::nullopt);
}

}  // namespace
}  // namespace ullage::cli
