// SPDX-License-Identifier: Apache-2.0
// test_pictures_in_cpp.py compares start pictures with Pillow and numpy; here is the rest.
#include "vqgan_clip/start_pictures.h"

#include "image/write_png.h"
#include "ullage/base/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace ullage::vqgan_clip {
namespace {

TEST(PromptSize, KeepsTheRatioAndAtMostTheArea) {
  EXPECT_EQ(prompt_size({640, 360}, {256, 256}), (PictureSize{341, 192}));
  EXPECT_EQ(prompt_size({100, 50}, {256, 256}), (PictureSize{100, 50}));
  EXPECT_EQ(prompt_size({1000, 1}, {4, 4}), (PictureSize{126, 1}));
}

TEST(Gradient, IsDrawnWithinItsBounds) {
  std::mt19937_64 draws(3);
  int least = 999, most = 0;
  for (int i = 0; i < 5000; ++i) {
    const Gradient gradient = draw_gradient(draws);
    EXPECT_TRUE(gradient.red >= 1 && gradient.red <= 254);
    EXPECT_TRUE(gradient.green >= 2 && gradient.green <= 254);
    EXPECT_TRUE(gradient.blue_above >= 0 && gradient.blue_above <= 254);
    EXPECT_TRUE(gradient.blue_below >= 3 && gradient.blue_below <= 127);
    least = std::min(least, gradient.blue_below), most = std::max(most, gradient.blue_below);
  }
  EXPECT_EQ(least, 3);
  EXPECT_EQ(most, 127);
}

TEST(InitNoise, OfASeedIsTheSameEverywhere) {
  // mt19937_64 is fixed by the standard: its first figure of seed 5489 is 14514284786278117030, 205 modulo 255.
  EXPECT_EQ(init_noise(InitNoise::Pixels, {2, 2}, {2, 2}, 5489).rgb[0], 14514284786278117030u % 255);
  EXPECT_EQ(init_noise(InitNoise::Gradient, {9, 9}, {9, 9}, 4).rgb,
            init_noise(InitNoise::Gradient, {9, 9}, {9, 9}, 4).rgb);
  EXPECT_THROW((void)init_noise(InitNoise::None, {2, 2}, {2, 2}, 0), ContractError);
}

TEST(InitImage, IsResizedAsItIsReadAndNeverHeldWhole) {
  const auto path = std::filesystem::temp_directory_path() / ("ullage_init_image_" + std::to_string(getpid()) + ".png");
  const std::vector<std::uint8_t> rgb(std::size_t{40} * 30 * 3, 9);
  ASSERT_TRUE(image::write_png(path.string(), 40, 30, rgb).ok());
  int asked = 0;
  const image::ChargeMemory charge = [&asked](Bytes, std::string_view) { return ++asked, nullptr; };
  const auto picture = load_init_image(path.string(), {16, 8}, charge);
  std::filesystem::remove(path);
  ASSERT_TRUE(picture.ok()) << picture.error().text();
  EXPECT_EQ(picture->width, 16u);
  EXPECT_EQ(picture->height, 8u);
  EXPECT_EQ(picture->rgb, std::vector<std::uint8_t>(std::size_t{16} * 8 * 3, 9));
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace ullage::vqgan_clip
