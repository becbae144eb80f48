// SPDX-License-Identifier: Apache-2.0
#include "upscale/tile.h"

#include <gtest/gtest.h>

namespace ullage::upscale {
namespace {

const NetworkShape kPublished;

Bytes all_of(std::int64_t width, std::int64_t rows, std::int64_t streams = 1) {
  const TileBytes bytes = tile_bytes(kPublished, width, rows, streams, Bytes{4});
  return bytes.kept + bytes.at_once;
}

TEST(UpscaleTile, KeepsTwelveKibibytesForEachBlockAndColumn) {
  NetworkShape fewer = kPublished;
  fewer.blocks -= 1;
  const Bytes with = tile_bytes(kPublished, 100, 8, 1, Bytes{4}).kept,
              without = tile_bytes(fewer, 100, 8, 1, Bytes{4}).kept;
  EXPECT_EQ(with - without, Bytes{100 * (12 * 1024 + 15 * 3)});  // and 15 rows more of the input, as bytes
}

TEST(UpscaleTile, KeepsTheSameWhateverItsRowsButForTheInput) {
  const Bytes few = tile_bytes(kPublished, 64, 8, 1, Bytes{4}).kept,
              many = tile_bytes(kPublished, 64, 64, 1, Bytes{4}).kept;
  EXPECT_EQ(many - few, Bytes{56 * 64 * 3});
}

TEST(UpscaleTile, KeepsTwiceAsMuchWithAlpha) {
  EXPECT_EQ(tile_bytes(kPublished, 64, 8, 2, Bytes{4}).kept, tile_bytes(kPublished, 64, 8, 1, Bytes{4}).kept * 2);
}

TEST(UpscaleTile, IsTheLargestThatFits) {
  for (const std::int64_t rows : {1, 2, 4, 8, 16, 32}) {
    const Bytes fits = all_of(1000, rows);
    EXPECT_EQ(choose_rows(kPublished, 1000, 1, Bytes{4}, fits), rows);
    EXPECT_EQ(choose_rows(kPublished, 1000, 1, Bytes{4}, all_of(1000, 2 * rows) - Bytes{1}), rows);
  }
  EXPECT_EQ(choose_rows(kPublished, 1000, 1, Bytes{4}, all_of(1000, 4096)), 64);
}

TEST(UpscaleTile, IsChosenByHalfTheRoomWhenWhatIsKeptHasToMove) {
  const Bytes little = all_of(1000, 1) - Bytes{1};
  const std::int64_t rows = choose_rows(kPublished, 1000, 1, Bytes{4}, little);
  EXPECT_GT(rows, 1);
  EXPECT_LE(tile_bytes(kPublished, 1000, rows, 1, Bytes{4}).at_once * 2, little);
  EXPECT_GT(tile_bytes(kPublished, 1000, 2 * rows, 1, Bytes{4}).at_once * 2, little);
  EXPECT_EQ(choose_rows(kPublished, 1000, 1, Bytes{4}, Bytes{1}), 1);
}

}  // namespace
}  // namespace ullage::upscale
