// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/caching_settings.h"

#include <gtest/gtest.h>

namespace ullage::sim {
namespace {

CachingSettings divided(std::uint64_t divisions) {
  CachingSettings settings;
  settings.roundup_power2_divisions.fill(divisions);
  return settings;
}

TEST(CachingSizes, BlocksAreMultiplesOf512) {
  const CachingSettings settings;
  EXPECT_EQ(settings.block_for(1_B), 512_B);
  EXPECT_EQ(settings.block_for(511_B), 512_B);
  EXPECT_EQ(settings.block_for(512_B), 512_B);
  EXPECT_EQ(settings.block_for(513_B), 1_KiB);
  EXPECT_EQ(settings.block_for(1_MiB), 1_MiB);
  EXPECT_EQ(settings.block_for(Bytes{(1_MiB).count + 1}), 1_MiB + 512_B);
}

TEST(CachingSizes, UpToOneMiBIsSmall) {
  EXPECT_TRUE(CachingSettings::is_small(1_MiB));
  EXPECT_FALSE(CachingSettings::is_small(1_MiB + 512_B));
}

TEST(CachingSizes, SegmentsAreOf2Or20MiBOrAMultipleOf2) {
  const CachingSettings settings;
  EXPECT_EQ(settings.segment_for(512_B), 2_MiB);
  EXPECT_EQ(settings.segment_for(1_MiB), 2_MiB);
  EXPECT_EQ(settings.segment_for(1_MiB + 512_B), 20_MiB);
  EXPECT_EQ(settings.segment_for(10_MiB - 512_B), 20_MiB);
  EXPECT_EQ(settings.segment_for(10_MiB), 10_MiB);
  EXPECT_EQ(settings.segment_for(10_MiB + 512_B), 12_MiB);
  EXPECT_EQ(settings.segment_for(12_MiB), 12_MiB);
  EXPECT_EQ(settings.segment_for(20_MiB), 20_MiB);
}

TEST(CachingSizes, LargeSegmentIsASetting) {
  CachingSettings settings;
  settings.large_segment = 64_MiB;
  EXPECT_EQ(settings.segment_for(1_MiB), 2_MiB);
  EXPECT_EQ(settings.segment_for(2_MiB), 64_MiB);
  EXPECT_EQ(settings.segment_for(10_MiB), 10_MiB);
}

TEST(CachingSizes, DivisionsCutEachDoubling) {
  const CachingSettings settings = divided(4);
  EXPECT_EQ(settings.block_for(2_KiB), 2_KiB);
  EXPECT_EQ(settings.block_for(Bytes{2049}), 2_KiB + 512_B);
  EXPECT_EQ(settings.block_for(1024_MiB), 1024_MiB);
  EXPECT_EQ(settings.block_for(Bytes{(1024_MiB).count + 1}), 1280_MiB);
  EXPECT_EQ(settings.block_for(1280_MiB), 1280_MiB);
  EXPECT_EQ(settings.block_for(Bytes{(1792_MiB).count + 1}), 2048_MiB);
}

TEST(CachingSizes, DivisionsLeaveWhatIsTooSmallForThem) {
  EXPECT_EQ(divided(8).block_for(Bytes{4096}), 4_KiB);   // 512 * 8: rounded as without divisions
  EXPECT_EQ(divided(8).block_for(Bytes{3000}), 3_KiB);   // below that, too
  EXPECT_EQ(divided(8).block_for(Bytes{4097}), 4608_B);  // the first size to which divisions apply
  EXPECT_EQ(divided(1).block_for(Bytes{5000}), 5120_B);  // one division changes nothing
  EXPECT_EQ(divided(2).block_for(Bytes{1025}), 1536_B);
}

TEST(CachingSizes, EachIntervalHasItsOwnDivisions) {
  CachingSettings settings;
  settings.roundup_power2_divisions[0] = 2;   // below 2 MiB
  settings.roundup_power2_divisions[3] = 4;   // 8 to 16 MiB
  settings.roundup_power2_divisions[15] = 8;  // from 32 GiB on
  EXPECT_EQ(settings.block_for(Bytes{(512_KiB).count + 1}), 768_KiB);
  EXPECT_EQ(settings.block_for(Bytes{(2_MiB).count + 1}), 2_MiB + 512_B);
  EXPECT_EQ(settings.block_for(Bytes{(8_MiB).count + 1}), 10_MiB);
  EXPECT_EQ(settings.block_for(Bytes{(16_MiB).count + 1}), 16_MiB + 512_B);
  EXPECT_EQ(settings.block_for(Bytes{(64_GiB).count + 1}), 72_GiB);
}

}  // namespace
}  // namespace ullage::sim
