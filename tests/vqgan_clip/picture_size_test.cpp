// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/picture_size.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::vqgan_clip {
namespace {

TEST(PictureSize, IsOneWordOrTwo) {
  EXPECT_EQ(*parse_size(std::vector<std::string>{"512x384"}), (PictureSize{512, 384}));
  EXPECT_EQ(*parse_size(std::vector<std::string>{"512X384"}), (PictureSize{512, 384}));
  EXPECT_EQ(*parse_size(std::vector<std::string>{"512", "384"}), (PictureSize{512, 384}));
}

TEST(PictureSize, IsNothingElse) {
  const std::vector<std::vector<std::string>> cases = {
      {}, {"512"}, {"x"}, {"0x16"}, {"16x0"}, {"-16x16"}, {"16x16x16"}, {"16", "x16"}, {"65537x16"}, {"1e3", "16"}};
  for (const auto& words : cases) EXPECT_FALSE(parse_size(words)) << testing::PrintToString(words);
}

TEST(PictureSize, IsRoundedDownToWholeTokensAndSaysSo) {
  const auto same = used_size({512, 304}, 16);
  EXPECT_EQ(same->size, (PictureSize{512, 304}));
  EXPECT_EQ(same->said, "");
  const auto less = used_size({900, 380}, 16);
  EXPECT_EQ(less->size, (PictureSize{896, 368}));
  EXPECT_EQ(less->said, "the picture is 896x368, not 900x380: this network makes whole squares of 16x16 pixels");
  EXPECT_EQ(used_size({900, 380}, 8)->size, (PictureSize{896, 376}));
}

TEST(PictureSize, IsATokenAtLeast) {
  EXPECT_EQ(used_size({16, 31}, 16)->size, (PictureSize{16, 16}));
  EXPECT_NE(used_size({512, 15}, 16).error().text().find("--size 512x15 is too small"), std::string::npos);
  EXPECT_FALSE(used_size({15, 512}, 16));
}

}  // namespace
}  // namespace ullage::vqgan_clip
