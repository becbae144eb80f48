// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include "ullage/trace/recording/reconstruct.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <span>

namespace ullage::report {
namespace {

using namespace trace;

// Makes a recording event by event.
struct Made {
  Recording recording;
  DeviceRecording& device = recording.devices.emplace_back();

  void add(auto what) { device.events.push_back({what, Microseconds{std::int64_t(device.events.size()) * 10}, {}}); }
  void segment(std::uint64_t at, Bytes bytes) { add(record::SegmentAllocation{Address{at}, bytes, {}}); }
  void allocate(std::uint64_t at, Bytes bytes) { add(record::Allocation{Address{at}, bytes, {}}); }
  void free(std::uint64_t at, Bytes bytes) {
    add(record::FreeRequest{Address{at}, bytes, {}});
    add(record::Free{Address{at}, bytes, {}});
  }
  // Adds a segment at the end of the recording. Its only block is inactive.
  void at_end(std::uint64_t at, Bytes bytes) {
    Segment one;
    one.address = Address{at};
    one.size = bytes;
    one.blocks = {{Address{at}, bytes, {}, Block::State::Inactive, {}}};
    device.segments.push_back(one);
  }
};

// Returns the timeline of a recording, after checking its sums at every moment.
Timeline timeline_of(const Made& made, std::optional<EventId> shown = {}) {
  InputHistory input;
  input.recorded = &made.device, input.stacks = &made.recording.stacks;
  input.made = reconstruct(made.device, made.recording);
  input.known = understanding_of(*input.made, made.recording.stacks);
  const Trace& history = *input.made;
  const Levels level = levels(history);
  Timeline line = make_timeline(input, level, shown);
  EXPECT_TRUE(std::ranges::is_sorted(line.moments));
  EXPECT_EQ(line.levels.size(), line.stacked + 1);
  for (std::size_t i = 0; i < line.moments.size(); ++i) {
    const std::uint64_t moment = line.moments[i];
    Bytes sum, stored;
    for (const std::vector<Bytes>& column : line.levels) sum += column[i];
    EXPECT_EQ(sum, moment == 0 ? history.live_before : level.live[moment - 1]) << "moment " << moment;
    // If there are very many storages, all are kept only at the peak and at the moment shown first.
    if (line.storages_left_out > 0 && moment != line.peak && moment != line.shown) continue;
    for (const PlacedStorage& one : line.storages)
      stored += one.from <= moment && moment < one.to ? one.bytes : Bytes{};
    EXPECT_EQ(stored, sum) << "moment " << moment;
  }
  for (const std::uint64_t wanted : {line.peak, line.shown, line.events}) {
    EXPECT_TRUE(std::ranges::binary_search(line.moments, wanted)) << wanted;
  }
  const std::string json = to_json(line, made.recording.stacks);
  EXPECT_EQ(json.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json).at("events"), line.events);
  return line;
}

TEST(Timeline, OfNothingIsEmpty) {
  const Timeline line = timeline_of({});
  EXPECT_EQ(line.moments, std::vector<std::uint64_t>{0});
  EXPECT_TRUE(line.storages.empty());
}

TEST(Timeline, HasEveryMomentOfAShortHistory) {
  Made made;
  made.segment(4096, 2_MiB);
  made.allocate(4096, 1_MiB);
  made.add(record::OutOfMemory{1_GiB, 3_MiB, {}});
  made.free(4096, 1_MiB);
  made.at_end(4096, 2_MiB);
  const Timeline line = timeline_of(made, EventId{2});
  EXPECT_EQ(line.moments.size(), 6u);
  EXPECT_EQ(line.peak, 2u);
  EXPECT_EQ(line.shown, 3u);
  ASSERT_EQ(line.refused.size(), 1u);
  EXPECT_EQ(line.refused[0].moment, 3u);
  EXPECT_EQ(line.times, (std::vector<std::int64_t>{0, 0, 10, 20, 30, 40}));
  ASSERT_EQ(line.ranges.size(), 1u);
  EXPECT_EQ(line.ranges[0].from, 1u);
  EXPECT_EQ(line.ranges[0].to, 6u);
}

TEST(Timeline, KeepsEveryExtremumOfALongHistory) {
  Made made;
  std::mt19937 random(7);
  std::vector<std::pair<std::uint64_t, Bytes>> alive;
  for (std::uint64_t i = 1; i < 30000; ++i) {
    if (random() % 2 == 0 || alive.empty()) {
      alive.emplace_back(i * (1_MiB).count, Bytes{1 + random() % 1000000});
      made.allocate(alive.back().first, alive.back().second);
    } else {
      made.free(alive.back().first, alive.back().second);
      alive.pop_back();
    }
  }
  for (const auto& [at, bytes] : alive) made.free(at, bytes);
  const Timeline line = timeline_of(made);
  EXPECT_LE(line.moments.size(), 7600u);
  const Levels level = levels(reconstruct(made.device, made.recording));
  for (std::uint64_t stretch = 0; stretch < 1500; ++stretch) {
    const std::uint64_t n = level.live.size(), begin = n * stretch / 1500, end = n * (stretch + 1) / 1500;
    const auto value = [&](std::uint64_t m) { return level.live[m - 1]; };
    std::vector<Bytes> kept;
    for (const std::uint64_t m : line.moments) {
      if (m > begin && m <= end) kept.push_back(value(m));
    }
    EXPECT_EQ(*std::ranges::max_element(kept),
              *std::max_element(level.live.begin() + std::ptrdiff_t(begin), level.live.begin() + std::ptrdiff_t(end)));
    EXPECT_EQ(*std::ranges::min_element(kept),
              *std::min_element(level.live.begin() + std::ptrdiff_t(begin), level.live.begin() + std::ptrdiff_t(end)));
  }
}

TEST(Timeline, OfVeryManyStoragesKeepsThoseAtThePeak) {
  Made made;
  for (std::uint64_t i = 1; i <= 70000; ++i) {
    made.allocate(i * 4096, 4_KiB);
    if (i % 100 != 0) made.free(i * 4096, 4_KiB);
  }
  for (std::uint64_t i = 1; i <= 1000; ++i) made.allocate(i, 1_B);
  for (std::uint64_t i = 1; i <= 1000; ++i) made.free(i, 1_B);
  const Timeline line = timeline_of(made);
  EXPECT_EQ(line.storages.size(), 60000u);
  EXPECT_EQ(line.storages_left_out, 11000u);
}

TEST(Timeline, WritesTheWholeStackOfEveryStorage) {
  Made made;
  Stacks& stacks = made.recording.stacks;
  std::vector<FrameId> frames;
  for (int i = 0; i < 40; ++i)
    frames.push_back(stacks.add({"net.py", "call" + std::to_string(i), std::uint64_t(i) + 1}));
  frames.insert(frames.begin(), stacks.add({"??", "at::empty", 0}));
  const auto made_by = [&](std::uint64_t at, std::span<const FrameId> stack) {
    made.allocate(at, 1_MiB);
    made.device.events.back().stack = stacks.add(stack);
  };
  made_by(0x1000000, frames);                           // all 41
  made_by(0x2000000, std::span(frames).subspan(10));    // the same, from the eleventh frame outwards
  made_by(0x3000000, std::span(frames).subspan(0, 5));  // other callers
  made.allocate(0x4000000, 1_MiB);                      // no stack
  const Timeline line = timeline_of(made);
  const auto json = nlohmann::json::parse(to_json(line, stacks));
  const auto& tree = json.at("stacks");
  std::vector<std::vector<std::string>> written;
  for (std::int64_t node : json.at("storages").at("stack")) {
    std::vector<std::string>& one = written.emplace_back();
    while (node >= 0) {
      one.push_back(tree.at("frames").at(tree.at("frame").at(std::size_t(node)).get<std::size_t>()));
      const std::int64_t up = tree.at("up").at(std::size_t(node));
      node = up > 0 ? node - up : -1;
    }
  }
  ASSERT_EQ(written.size(), 4u);
  std::vector<std::string> whole = {"at::empty"};
  for (int i = 0; i < 40; ++i) whole.push_back("net.py:" + std::to_string(i + 1) + " call" + std::to_string(i));
  EXPECT_EQ(written[0], whole);
  EXPECT_EQ(written[1], std::vector(whole.begin() + 10, whole.end()));
  EXPECT_EQ(written[2], std::vector(whole.begin(), whole.begin() + 5));
  EXPECT_TRUE(written[3].empty());
  EXPECT_EQ(tree.at("frames").size(), 41u);  // each text stands once
  EXPECT_EQ(tree.at("up").size(), 46u);      // the second stack is a part of the first
}

TEST(Timeline, HasThePhasesThatTheProgramNamedAndTheDeducedOnes) {
  Made made;
  Stacks& stacks = made.recording.stacks;
  const FrameId backward = stacks.add({"torch/_tensor.py", "backward", 500});
  for (std::uint64_t i = 1; i < 20; ++i) {
    made.allocate(i * (1_MiB).count, 1_MiB);
    made.device.events.back().stack = stacks.add(std::span(&backward, 1));
  }
  made.recording.annotations = {{true, "mine", 0, Microseconds{40}}, {false, "mine", 0, Microseconds{90}}};
  const Timeline line = timeline_of(made);
  ASSERT_EQ(line.strips.size(), 2u);
  EXPECT_EQ(std::tuple(line.strips[0].name, line.strips[0].own), std::tuple("backward", false));
  EXPECT_EQ(std::tuple(line.strips[1].name, line.strips[1].own), std::tuple("mine", true));
  EXPECT_EQ(std::tuple(line.strips[1].from, line.strips[1].to), std::tuple(4u, 9u));
}

std::vector<PlacedRange> ranges_of(const Made& made) {
  return reserved_ranges(reconstruct(made.device, made.recording), made.device);
}

TEST(ReservedRanges, FromBeforeAreTheUnseenOnes) {
  Made made;
  made.add(record::SegmentFree{Address{0x1000}, 2_MiB, {}});
  made.at_end(0x800000, 20_MiB);
  const std::vector<PlacedRange> ranges = ranges_of(made);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(std::tuple(ranges[0].from, ranges[0].to, ranges[0].bytes), std::tuple(0u, 1u, 2_MiB));
  EXPECT_EQ(std::tuple(ranges[1].from, ranges[1].to, ranges[1].bytes), std::tuple(0u, 2u, 20_MiB));
}

TEST(ReservedRanges, AnUnmapCutsWhatWasMapped) {
  Made made;
  made.add(record::SegmentMap{Address{0}, 60_MiB, {}});
  made.add(record::SegmentUnmap{Address{(20_MiB).count}, 20_MiB, {}});
  made.at_end(0, 20_MiB);
  made.at_end((40_MiB).count, 20_MiB);
  const std::vector<PlacedRange> ranges = ranges_of(made);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(std::tuple(ranges[0].from, ranges[0].to, ranges[0].bytes), std::tuple(1u, 3u, 20_MiB));
  EXPECT_EQ(std::tuple(ranges[1].from, ranges[1].to, ranges[1].bytes), std::tuple(1u, 2u, 20_MiB));
  EXPECT_EQ(std::tuple(ranges[2].from, ranges[2].to, ranges[2].bytes), std::tuple(1u, 3u, 20_MiB));
}

TEST(ReservedRanges, TakeAddressesUpToTheLast) {
  Made made;
  made.segment(UINT64_MAX - 5, 2_MiB);
  made.add(record::SegmentFree{Address{UINT64_MAX - 5}, 2_MiB, {}});
  const std::vector<PlacedRange> ranges = ranges_of(made);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].bytes, 5_B);
}

}  // namespace
}  // namespace ullage::report
