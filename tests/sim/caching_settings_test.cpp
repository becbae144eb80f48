// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/caching_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ullage::sim {
namespace {

CachingSettings parsed(std::string_view text) {
  const Result<CachingSettings> settings = CachingSettings::parse(text);
  EXPECT_TRUE(settings.ok()) << settings.error().text();
  return settings.ok() ? *settings : CachingSettings{};
}

std::string refusal(std::string_view text) {
  const Result<CachingSettings> settings = CachingSettings::parse(text);
  EXPECT_FALSE(settings.ok()) << text;
  if (settings.ok()) return {};
  EXPECT_EQ(settings.error().kind, Error::Kind::BadArgument);
  return settings.error().message;
}

TEST(CachingSettings, NothingMeansDefaults) {
  const CachingSettings settings = parsed("");
  EXPECT_FALSE(settings.max_split);
  EXPECT_FALSE(settings.max_non_split_rounding);
  EXPECT_EQ(settings.garbage_collection_threshold, 0);
  EXPECT_EQ(settings.memory_fraction, 1);
  EXPECT_FALSE(settings.expandable_segments);
  EXPECT_EQ(settings.large_segment, 20_MiB);
}

TEST(CachingSettings, ReadsTheKeysThatMoveBytes) {
  const CachingSettings settings = parsed(
      "expandable_segments:True, max_split_size_mb:128,max_non_split_rounding_mb:64,large_segment_size_mb:40,"
      "garbage_collection_threshold:0.6,roundup_power2_divisions:4,per_process_memory_fraction:0.5");
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.max_split, 128_MiB);
  EXPECT_EQ(settings.max_non_split_rounding, 64_MiB);
  EXPECT_EQ(settings.large_segment, 40_MiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_EQ(settings.memory_fraction, 0.5);
  const auto& divisions = settings.roundup_power2_divisions;
  EXPECT_TRUE(std::all_of(divisions.begin(), divisions.end(), [](std::uint64_t d) { return d == 4; }));
}

TEST(CachingSettings, TakesKeysThatMoveNothing) {
  EXPECT_FALSE(
      parsed("backend:native,pinned_use_cuda_host_register:True,expandable_segments:False").expandable_segments);
}

TEST(CachingSettings, ReadsDivisionsByInterval) {
  const auto& divisions = parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions;
  for (std::size_t at = 0; at < 8; ++at) EXPECT_EQ(divisions[at], 1u) << "the first holds for all below it: " << at;
  EXPECT_EQ(divisions[8], 1u);
  EXPECT_EQ(divisions[9], 2u);
  EXPECT_EQ(divisions[10], 4u);
  for (std::size_t at = 11; at < 16; ++at) EXPECT_EQ(divisions[at], 8u) << at;
}

TEST(CachingSettings, AnIntervalNotNamedHasNoDivisions) {
  const auto& divisions = parsed("roundup_power2_divisions:[2:4,16:0,64:8],backend:native").roundup_power2_divisions;
  EXPECT_EQ(divisions[0], 4u);
  EXPECT_EQ(divisions[1], 4u);
  EXPECT_EQ(divisions[2], 0u);
  EXPECT_EQ(divisions[4], 0u);
  EXPECT_EQ(divisions[6], 8u);
  EXPECT_EQ(divisions[7], 0u);
}

TEST(CachingSettings, IntervalsBeyondTheLastAreTheLast) {
  EXPECT_EQ(parsed("roundup_power2_divisions:[131072:2,>:4]").roundup_power2_divisions[15], 2u);
}

TEST(CachingSettings, RefusesMaxSplitBelowALargeSegment) {
  EXPECT_EQ(parsed("max_split_size_mb:20").max_split, 20_MiB);
  EXPECT_EQ(refusal("max_split_size_mb:19"),
            "max_split_size_mb is 19, expected at least 20, the size of a large segment");
  EXPECT_EQ(refusal("large_segment_size_mb:64,max_split_size_mb:32"),
            "max_split_size_mb is 32, expected at least 64, the size of a large segment");
  EXPECT_NE(refusal("max_non_split_rounding_mb:1").find("expected at least 20"), std::string::npos);
}

TEST(CachingSettings, NamesAnUnknownKeyAndTheOneThatMayBeMeant) {
  EXPECT_EQ(refusal("expandable_segment:True"),
            "unknown key 'expandable_segment', did you mean 'expandable_segments'?");
  EXPECT_EQ(refusal("max_split_size:128"), "unknown key 'max_split_size', did you mean 'max_split_size_mb'?");
  EXPECT_EQ(refusal("colour:red"), "unknown key 'colour'");
}

TEST(CachingSettings, RefusesValuesThatTorchRefuses) {
  EXPECT_EQ(refusal("max_split_size_mb:big"), "max_split_size_mb is 'big', expected a whole number");
  EXPECT_EQ(refusal("max_split_size_mb:-1"), "max_split_size_mb is '-1', expected a whole number");
  EXPECT_EQ(refusal("max_split_size_mb"), "'max_split_size_mb' has no value, expected key:value");
  EXPECT_EQ(refusal("expandable_segments:true"), "expandable_segments is 'true', expected True or False");
  EXPECT_EQ(refusal("garbage_collection_threshold:1.0"),
            "garbage_collection_threshold is '1.0', expected a number above 0 and below 1");
  EXPECT_EQ(refusal("garbage_collection_threshold:nan"),
            "garbage_collection_threshold is 'nan', expected a number above 0 and below 1");
  EXPECT_EQ(refusal("roundup_power2_divisions:3"),
            "roundup_power2_divisions has 3 divisions, expected a power of 2 or 0");
  EXPECT_EQ(refusal("roundup_power2_divisions:[100:2]"),
            "roundup_power2_divisions has the interval 100, expected a power of 2");
  EXPECT_EQ(refusal("roundup_power2_divisions:[256:1"), "roundup_power2_divisions has a list without its ']'");
  EXPECT_EQ(refusal("roundup_power2_divisions:[256]"),
            "roundup_power2_divisions has '256' in its list, expected interval:divisions");
  EXPECT_EQ(refusal("large_segment_size_mb:1"), "large_segment_size_mb is below 2");
}

TEST(CachingSettings, TakesHugeSizesAsNoLimit) {
  EXPECT_GE(parsed("max_split_size_mb:99999999999999999").max_split, Bytes{1ull << 62});
  EXPECT_EQ(refusal("max_split_size_mb:99999999999999999999"),
            "max_split_size_mb is '99999999999999999999', expected a whole number");
}

}  // namespace
}  // namespace ullage::sim
