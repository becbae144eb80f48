// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/gzip.h"

#include "read/gzip_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ullage::read {
namespace {

Result<std::string> unfold(const std::string& data, const GzipLimits& limits = {}) {
  return gunzip(std::as_bytes(std::span(data)), "x.gz", limits);
}

std::string some_text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i * i) + (i % 7 ? " " : "\n");
  text.resize(size);
  return text;
}

TEST(Gzip, UnfoldsWhatWasFolded) {
  for (const std::size_t size : {0, 1, 100, 65535, 65536, 65537, 3000000}) {
    const auto result = unfold(gzip(some_text(size)));
    ASSERT_TRUE(result) << size;
    EXPECT_EQ(*result, some_text(size)) << size;
  }
}

TEST(Gzip, JoinsMembersAndSkipsPadding) {
  const auto result = unfold(gzip("one ") + gzip("") + gzip("two") + std::string(512, '\0'));
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "one two");
}

TEST(Gzip, CutOffAtEveryByteIsRefusedWithItsOffset) {
  const std::string whole = gzip(some_text(300));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const auto result = unfold(whole.substr(0, size));
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().kind, Error::Kind::BadFile);
    EXPECT_EQ(result.error().where, "x.gz:" + std::to_string(size));
    EXPECT_NE(result.error().message.find("cut off"), std::string::npos) << result.error().message;
  }
}

TEST(Gzip, AChangedByteIsRefusedOrOfTheHeaderAlone) {
  const std::string whole = gzip(some_text(300));
  const std::size_t header = 10;
  for (std::size_t at = header; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    EXPECT_FALSE(unfold(changed)) << at;
  }
}

TEST(Gzip, SomethingElseBehindItIsRefused) {
  const std::string member = gzip("one");
  const auto result = unfold(member + "two");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, "x.gz:" + std::to_string(member.size()));
}

TEST(Gzip, ABombIsRefusedByItsRatioWithBothNumbers) {
  GzipLimits limits;
  limits.ratio_from = 1_MiB;
  const auto result = unfold(gzip(std::string(std::size_t{16} << 20, 'a')), limits);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::BadFile);
  EXPECT_NE(result.error().message.find("the limit is 250 times"), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find(" bytes from "), std::string::npos) << result.error().message;
}

TEST(Gzip, ABombOfManyMembersIsRefused) {
  GzipLimits limits;
  limits.ratio_from = 1_MiB;
  const std::string member = gzip(std::string(std::size_t{1} << 20, 'a'));
  std::string bomb;
  for (int i = 0; i < 64; ++i) bomb += member;
  EXPECT_FALSE(unfold(bomb, limits));
}

TEST(Gzip, MoreThanTheLargestIsRefusedWithBothNumbers) {
  GzipLimits limits;
  limits.largest = 100_KiB;
  EXPECT_TRUE(unfold(gzip(some_text((100_KiB).count)), limits));
  const auto result = unfold(gzip(some_text((100_KiB).count + 1)), limits);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("the limit is 102400"), std::string::npos) << result.error().message;
}

TEST(Gzip, IsToldByItsFirstTwoBytes) {
  EXPECT_TRUE(is_gzip(std::as_bytes(std::span("\x1f\x8b", 2))));
  EXPECT_FALSE(is_gzip(std::as_bytes(std::span("\x1f", 1))));
  EXPECT_FALSE(unfold("not gzip"));
}

}  // namespace
}  // namespace ullage::read
