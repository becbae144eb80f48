// SPDX-License-Identifier: Apache-2.0
#include "image/resize.h"

#include "ullage/base/check.h"

#include "pictures.h"

#include <gtest/gtest.h>

namespace ullage::image::test {
namespace {

FileBytes sample_row(std::uint32_t width, std::uint32_t y) {
  FileBytes row;
  for (std::uint32_t x = 0; x < width; ++x) {
    for (int c = 0; c < 3; ++c) row.push_back(sample(x, y, c));
  }
  return row;
}

Picture resized(PictureSize size, std::uint32_t side) {
  SquareResize resize(side);
  resize.start(size);
  for (std::uint32_t y = 0; y < size.height; ++y) resize.row(sample_row(size.width, y));
  return resize.take();
}

TEST(SquareResize, ShrinksAsPillow) {
  // From Pillow 13.0.0: 7 x 5 to 4 x 3, columns first, cropped to 3 x 3.
  const FileBytes pillow = {4,   84, 164, 11,  91, 171, 21,  101, 181, 9,   89, 169, 16, 96,
                            176, 26, 106, 186, 14, 94,  174, 21,  101, 181, 31, 111, 191};
  EXPECT_EQ(resized({7, 5}, 3).rgb, pillow);
}

TEST(SquareResize, GrowsAsPillow) {
  // From Pillow 13.0.0: 3 x 4 to 5 x 6, columns first, cropped to 5 x 5; the red channel.
  const FileBytes pillow = {0, 2, 5, 8, 10, 2, 4, 7, 10, 12, 4, 6, 9, 12, 14, 5, 7, 10, 13, 15, 8, 10, 13, 16, 18};
  const Picture picture = resized({3, 4}, 5);
  ASSERT_EQ(picture.rgb.size(), 75u);
  for (std::size_t i = 0; i < pillow.size(); ++i) EXPECT_EQ(picture.rgb[3 * i], pillow[i]) << i;
}

TEST(SquareResize, LeavesASquareOfItsSizeAlone) {
  const Picture picture = resized({17, 17}, 17);
  for (std::uint32_t y = 0; y < 17; ++y) {
    const FileBytes row = sample_row(17, y);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), picture.rgb.begin() + y * 17 * 3)) << y;
  }
}

TEST(SquareResize, OnlyCropsWhenTheShorterSideFits) {
  const Picture picture = resized({16, 10}, 10);  // columns 3 to 13
  for (std::uint32_t y = 0; y < 10; ++y) EXPECT_EQ(picture.rgb[y * 30], sample(3, y, 0)) << y;
}

TEST(ResizeLanczos, ResizesAsPillow) {
  // From Pillow 13.0.0, columns first.
  Picture picture{7, 5, {}};
  for (std::uint32_t y = 0; y < 5; ++y) {
    const FileBytes row = sample_row(7, y);
    picture.rgb.insert(picture.rgb.end(), row.begin(), row.end());
  }
  const FileBytes pillow = {3,  83,  163, 11, 91,  171, 21, 101, 181, 29, 109, 189, 8,  88,  168, 16, 96,  176,
                            26, 106, 186, 34, 114, 194, 13, 93,  173, 21, 101, 181, 31, 111, 191, 39, 119, 199};
  EXPECT_EQ(resize_lanczos(picture, {4, 3}).rgb, pillow);
  EXPECT_EQ(resize_lanczos(picture, {7, 5}).rgb, picture.rgb);
}

TEST(ResizeLanczos, CutsOffWhatOvershoots) {
  Picture edges{4, 2, {}};
  for (const int level : {0, 255, 255, 0, 255, 255, 0, 0})
    edges.rgb.insert(edges.rgb.end(), 3, static_cast<std::uint8_t>(level));
  const FileBytes pillow = {0, 91, 255, 255, 123, 0, 124, 182, 239, 144, 55, 4, 255, 255, 218, 5, 0, 8};
  const Picture larger = resize_lanczos(edges, {6, 3});
  ASSERT_EQ(larger.rgb.size(), 54u);
  for (std::size_t i = 0; i < pillow.size(); ++i) EXPECT_EQ(larger.rgb[3 * i], pillow[i]) << i;
}

TEST(SquareResize, HoldsFewRows) {
  SquareResize resize(256);
  const Bytes growth = peak_growth([&] { resize.start({9459, 18918}); });
  EXPECT_LT(growth, 1_MiB);
}

TEST(SquareResize, GivesNoSquareBeforeItIsWhole) {
  EXPECT_THROW(SquareResize(0), ContractError);
  SquareResize resize(4);
  EXPECT_THROW((void)resize.take(), ContractError);
  resize.start({8, 8});
  for (std::uint32_t y = 0; y < 7; ++y) resize.row(sample_row(8, y));
  EXPECT_THROW((void)resize.take(), ContractError);
  resize.row(sample_row(8, 7));
  EXPECT_EQ(resize.take().rgb.size(), 48u);
  EXPECT_THROW((void)resize.take(), ContractError);
}

}  // namespace
}  // namespace ullage::image::test
