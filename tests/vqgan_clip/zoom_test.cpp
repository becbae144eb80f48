// SPDX-License-Identifier: Apache-2.0
// test_pictures_in_cpp.py compares zoom frames with Pillow; here is the rest.
#include "vqgan_clip/zoom.h"

#include "ullage/base/check.h"

#include <gtest/gtest.h>

#include <limits>

namespace ullage::vqgan_clip {
namespace {

// A picture of 3 x 2 pixels, in which red counts the pixels.
image::Picture counted() { return {3, 2, {0, 9, 9, 1, 9, 9, 2, 9, 9, 3, 9, 9, 4, 9, 9, 5, 9, 9}}; }

std::vector<int> reds(const image::Picture& picture) {
  std::vector<int> all;
  for (std::size_t i = 0; i < picture.rgb.size(); i += 3) all.push_back(picture.rgb[i]);
  return all;
}

TEST(Zoom, OfOneLeavesThePictureAlone) { EXPECT_EQ(zoomed(counted(), {}).rgb, counted().rgb); }

TEST(Zoom, ShiftsToTheRightAndDownAndAround) {
  EXPECT_EQ(reds(zoomed(counted(), {1, 1, 0})), (std::vector{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(reds(zoomed(counted(), {1, 0, 1})), (std::vector{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(reds(zoomed(counted(), {1, -1, 0})), (std::vector{1, 2, 0, 4, 5, 3}));
  EXPECT_EQ(reds(zoomed(counted(), {1, 3'000'000'000'001, -2})), (std::vector{2, 0, 1, 5, 3, 4}));
}

TEST(Zoom, IsCheckedBeforeTheWork) {
  for (const double scale : {0.1, 0.99, 1.0, 1.01, 30.0}) EXPECT_TRUE(check_zoom({scale, 0, 0}, {512, 512})) << scale;
  for (const double scale : {1025.0, 1e300, 0.03, 1e-9, 1e-300, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(check_zoom({scale, 0, 0}, {512, 512})) << scale;
  }
  EXPECT_EQ(check_zoom({2000, 0, 0}, {512, 384}).error().text(),
            "--zoom-scale 2000 does not work with a picture of 512x384 pixels: nothing of it would be left; give one "
            "near 1");
  EXPECT_THROW((void)zoomed(counted(), {2000, 0, 0}), ContractError);
}

TEST(FramePath, HasPlainNumbersAsInThePublishedProgram) {
  EXPECT_EQ(frame_path("steps", 0), "steps/0.png");
  EXPECT_EQ(frame_path("out/steps/", 4500), "out/steps/4500.png");
}

}  // namespace
}  // namespace ullage::vqgan_clip
