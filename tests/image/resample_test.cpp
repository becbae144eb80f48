// SPDX-License-Identifier: Apache-2.0
#include "image/resample.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ullage::image::test {
namespace {

TEST(SquareSide, RoundsHalfAPixelToEvenAsPythonDoes) {
  // round(0.5) = 0, round(1.5) = 2, round(2.5) = 2, round(3.5) = 4
  EXPECT_EQ(square_side(11, 10, 10).first, 0u);
  EXPECT_EQ(square_side(13, 10, 10).first, 2u);
  EXPECT_EQ(square_side(15, 10, 10).first, 2u);
  EXPECT_EQ(square_side(17, 10, 10).first, 4u);
  EXPECT_EQ(square_side(16, 10, 10).first, 3u);
}

TEST(SquareSide, CutsTheLongerSideOff) {
  EXPECT_EQ(square_side(256, 97, 64).out, 168u);  // int(64 * 256 / 97 = 168.9)
  EXPECT_EQ(square_side(97, 97, 64).out, 64u);
  EXPECT_EQ(square_side(178'956'970, 1, 13'377).out, std::uint64_t{178'956'970} * 13'377);
}

TEST(Weights, SumToOneAndStayInside) {
  for (const std::uint32_t in : {1u, 2u, 63u, 64u, 65u, 1000u}) {
    for (const std::uint32_t out : {1u, 7u, 64u, 999u}) {
      const Weights weights(SideResize{in, out, 0, out});
      ASSERT_EQ(weights.size(), out);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const Weights::Taps taps = weights[i];
        ASSERT_LT(taps.begin, taps.end);
        ASSERT_LE(taps.end, in);
        ASSERT_LE(taps.end - taps.begin, weights.longest());
        const auto sum = std::accumulate(taps.weights.begin(), taps.weights.end(), std::int64_t{0});
        ASSERT_NEAR(static_cast<double>(sum), 1 << kWeightBits, taps.end - taps.begin) << in << " to " << out;
      }
    }
  }
}

TEST(Weights, OfAWindowAreThoseOfTheWhole) {
  const Weights whole(SideResize{300, 117, 0, 117});
  const Weights window(SideResize{300, 117, 26, 64});
  for (std::size_t i = 0; i < 64; ++i) {
    ASSERT_EQ(window[i].begin, whole[i + 26].begin);
    ASSERT_TRUE(std::equal(window[i].weights.begin(), window[i].weights.end(), whole[i + 26].weights.begin()));
  }
}

TEST(Weights, LeaveAPictureOfTheSameSizeAlone) {
  for (const Filter filter : {Filter::Bilinear, Filter::Lanczos}) {
    const Weights weights(whole_side(9, 9), filter);
    for (std::uint32_t i = 0; i < 9; ++i) {
      const Weights::Taps taps = weights[i];
      for (std::uint32_t x = taps.begin; x < taps.end; ++x)
        EXPECT_EQ(taps.weights[x - taps.begin], x == i ? 1 << kWeightBits : 0);
    }
  }
}

TEST(Weights, OfLanczosReachThreePixelsAndMayBeNegative) {
  const Weights weights(whole_side(20, 40), Filter::Lanczos);
  const Weights::Taps taps = weights[20];  // its middle is a quarter of a pixel before that of input pixel 10
  EXPECT_EQ(taps.begin, 7u);
  EXPECT_EQ(taps.end, 13u);
  EXPECT_LT(taps.weights[1], 0);
  EXPECT_GT(taps.weights[3], taps.weights[2]);
}

TEST(ToSample, CutsBothEndsOff) {
  EXPECT_EQ(to_sample(-(5 << kWeightBits)), 0);
  EXPECT_EQ(to_sample((7 << kWeightBits) + kWeightHalf), 7);
  EXPECT_EQ(to_sample(300 << kWeightBits), 255);
}

}  // namespace
}  // namespace ullage::image::test
