// SPDX-License-Identifier: Apache-2.0
#include "dcgan/pixels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace ullage::dcgan {
namespace {

TEST(ToPlanes, NormalisesAsTorchvisionDoes) {
  // Made in Python: torch.tensor(b).float().div(255).sub(0.5).div(0.5)
  const std::vector<std::uint8_t> rgb = {0, 1, 2, 127, 128, 254, 255, 51, 204, 3, 77, 100};
  std::vector<float> planes(12);
  to_planes(rgb, 2, planes.data());
  const std::vector<float> expected = {-1,
                                       -0.00392156839f,
                                       1,
                                       -0.97647059f,
                                       -0.992156863f,
                                       0.003921628f,
                                       -0.600000024f,
                                       -0.396078408f,
                                       -0.984313726f,
                                       0.992156863f,
                                       0.600000024f,
                                       -0.215686262f};
  EXPECT_EQ(planes, expected);
}

std::uint8_t at(const Grid& grid, std::uint32_t x, std::uint32_t y, std::uint32_t channel) {
  return grid.rgb[3 * (std::size_t{y} * grid.width + x) + channel];
}

TEST(MakeGrid, LaysEightInARowWithBlackBetween) {
  // Nine pictures of 2 x 2. Every value of picture k is k, except 8.5 in the green of its last pixel.
  std::vector<float> pictures;
  for (int k = 0; k < 9; ++k) {
    std::vector<float> one(12, static_cast<float>(k));
    one[7] = 8.5f;
    pictures.insert(pictures.end(), one.begin(), one.end());
  }
  const Grid grid = make_grid(pictures.data(), 9, 2);
  ASSERT_EQ(grid.width, 8u * 4 + 2);
  ASSERT_EQ(grid.height, 2u * 4 + 2);
  for (std::uint32_t k = 0; k < 9; ++k) {
    const std::uint32_t x = 2 + k % 8 * 4;
    const std::uint32_t y = 2 + k / 8 * 4;
    EXPECT_EQ(at(grid, x, y, 0), std::lround(k / 8.5 * 255));
    EXPECT_EQ(at(grid, x + 1, y + 1, 1), 255);
    EXPECT_EQ(at(grid, x + 1, y + 1, 2), std::lround(k / 8.5 * 255));
    EXPECT_EQ(at(grid, x - 1, y, 0), 0);
    EXPECT_EQ(at(grid, x + 2, y, 0), 0);
  }
  const int sum = std::accumulate(grid.rgb.begin(), grid.rgb.end(), 0);
  int expected = 9 * 255;
  for (int k = 0; k < 9; ++k) expected += 11 * static_cast<int>(std::lround(k / 8.5 * 255));
  EXPECT_EQ(sum, expected) << "nothing else is painted";
}

TEST(MakeGrid, GivesOnePictureNoFrame) {
  const std::vector<float> picture = {-1, -0.5f, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0};
  const Grid grid = make_grid(picture.data(), 1, 2);
  ASSERT_EQ(grid.width, 2u);
  EXPECT_EQ(grid.rgb, (std::vector<std::uint8_t>{0, 255, 128, 64, 255, 128, 128, 255, 128, 255, 255, 128}));
}

TEST(MakeGrid, SurvivesARunThatDiverged) {
  const std::vector<float> picture(12, std::nanf(""));
  EXPECT_EQ(make_grid(picture.data(), 1, 2).rgb, std::vector<std::uint8_t>(12, 0));
}

}  // namespace
}  // namespace ullage::dcgan
