// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/convert.h"

#include "ullage/report/convert/rows.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <random>
#include <sstream>
#include <string>

namespace ullage::report {
namespace {

trace::Profile sample_profile() {
  trace::Profile profile;
  const trace::FrameId frame = profile.stacks.add(trace::Frame{"train \"one\".py", "main\xff", 3});
  const trace::StackId stack = profile.stacks.add(std::span(&frame, 1));
  trace::Profile::Device device;
  device.type = 1;
  device.name = "Some GPU";
  trace::Trace& t = device.trace;
  t.live_before = 256_B;
  t.reserved_before = 2_MiB;
  t.storages.push_back({256_B, {1}, {}, {}, trace::kNoOp, {0}, {3}, {3}, true});
  t.storages.push_back({512_B, {2}, {}, stack, trace::kNoOp, {0}, {2}, {2}, false});
  t.events.push_back({trace::event::Allocation{{1}}, trace::Microseconds{1000}, stack});
  t.events.push_back({trace::event::OutOfMemory{1_GiB, {}, false}, trace::Microseconds{1010}, {}});
  t.events.push_back({trace::event::Free{{1}}, trace::Microseconds{1020}, {}});
  t.annotations = {{false, "before", 0, {1005}}, {true, "step", 0, {1002}},  {true, "inner", 0, {1003}},
                   {false, "inner", 0, {1004}},  {false, "step", 0, {1012}}, {true, "after", 0, {1015}}};
  profile.devices.push_back(device);
  return profile;
}

nlohmann::json perfetto(const trace::Input& input) {
  std::ostringstream out;
  const Status written = write_perfetto(input, out);
  EXPECT_TRUE(written);
  return nlohmann::json::parse(out.str())["traceEvents"];
}

TEST(Perfetto, CountsLiveAndReservedBytes) {
  std::string levels;
  for (const auto& event : perfetto(sample_profile()))
    if (event["ph"] == "C" && event["name"] == "live bytes")
      levels += std::to_string(event["ts"].get<int>()) + ":" + std::to_string(event["args"]["bytes"].get<int>()) + " ";
  EXPECT_EQ(levels, "0:256 0:768 20:256 ");
}

TEST(Perfetto, DrawsStoragesAndAnnotations) {
  std::map<std::string, std::string> slices;
  for (const auto& event : perfetto(sample_profile()))
    if (event["ph"] == "X")
      slices[event["name"].get<std::string>().substr(0, 6)] =
          std::to_string(event["ts"].get<int>()) + "+" + std::to_string(event["dur"].get<int>());
  EXPECT_EQ(slices["before"], "0+5");
  EXPECT_EQ(slices["step"], "2+10");
  EXPECT_EQ(slices["inner"], "3+1");
  EXPECT_EQ(slices["after"], "15+5");
  EXPECT_EQ(slices["512 B "], "0+20");
  EXPECT_EQ(slices["256 B "], "0+20");
}

TEST(Perfetto, MarksTheFailure) {
  bool found = false;
  for (const auto& event : perfetto(sample_profile()))
    found |= event["ph"] == "i" && event["ts"] == 10 && event["name"] == "out of memory: 1.00 GiB asked for";
  EXPECT_TRUE(found);
}

TEST(Perfetto, CountsByEventWhereTheFileHasNoTimes) {
  trace::Profile profile = sample_profile();
  profile.devices[0].trace.events[1].at.reset();
  std::string levels;
  for (const auto& event : perfetto(profile))
    if (event["ph"] == "C" && event["name"] == "live bytes")
      levels += std::to_string(event["ts"].get<int>()) + ":" + std::to_string(event["args"]["bytes"].get<int>()) + " ";
  EXPECT_EQ(levels, "0:256 0:768 2:256 ");
}

TEST(Perfetto, TimesFurtherApartThan63BitsAreCut) {
  trace::Profile profile = sample_profile();
  profile.devices[0].trace.events[0].at = trace::Microseconds{INT64_MIN};
  profile.devices[0].trace.events[2].at = trace::Microseconds{INT64_MAX};
  EXPECT_FALSE(perfetto(profile).empty());
}

TEST(Perfetto, ALogIsRefused) {
  std::ostringstream out;
  const Status written = write_perfetto(trace::Log{}, out);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, Error::Kind::BadArgument);
  EXPECT_TRUE(out.str().empty());
}

TEST(Rows, OverlapNowhereAndAreAsFewAsCanBe) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> extents(30);
    for (Extent& extent : extents) {
      extent.begin = static_cast<std::int64_t>(random() % 50);
      extent.end = extent.begin + static_cast<std::int64_t>(random() % 20);
    }
    const std::vector<unsigned> rows = rows_of(extents);
    unsigned most_at_once = 0, most_row = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      most_row = std::max(most_row, rows[i] + 1);
      unsigned at_once = 0;
      for (std::size_t j = 0; j < extents.size(); ++j) {
        const bool overlaps = extents[i].begin < extents[j].end && extents[j].begin < extents[i].end;
        EXPECT_FALSE(i != j && overlaps && rows[i] == rows[j]);
        at_once += extents[j].begin <= extents[i].begin && (extents[j].end > extents[i].begin || j == i);
      }
      most_at_once = std::max(most_at_once, at_once);
    }
    EXPECT_LE(most_row, most_at_once + 1);
  }
}

}  // namespace
}  // namespace ullage::report
