// SPDX-License-Identifier: Apache-2.0
// Replays recordings that a model made, so that every choice is known: whole, without their beginning, and with one
// change.
#include "ullage/sim/replay.h"

#include "ullage/sim/layout.h"

#include "model.h"
#include "recorded.h"
#include "workload.h"

namespace ullage::sim {
namespace {

struct Case {
  const char* name;
  CachingSettings settings;
  Bytes device = 64_GiB;
  unsigned event_queries = 0;
};

std::vector<Case> cases() {
  CachingSettings expandable;
  expandable.expandable_segments = true;
  CachingSettings split;
  split.max_split = 64_MiB;
  CachingSettings divided;
  divided.roundup_power2_divisions.fill(4);
  CachingSettings both = expandable;
  both.max_split = 128_MiB;
  return {{"plain", {}},
          {"late events", {}, 64_GiB, 4},
          {"full", {}, 3_GiB},
          {"divided", divided},
          {"max split", split},
          {"max split, full", split, 3_GiB},
          {"expandable", expandable},
          {"expandable, full", expandable, 3_GiB},
          {"expandable and max split", both, 3_GiB, 3}};
}

// Runs a random workload on a model and records it.
struct Recorded {
  explicit Recorded(const Case& c, std::size_t operations = 3000, std::uint64_t streams = 3)
      : device(c.device, Addresses::LowestFit), allocator(c.settings, device, &recorder, c.event_queries) {
    Workload workload(1, c.device, streams);
    for (std::size_t i = 0; i < operations; ++i) workload.step(allocator);
  }
  SimulatedDevice device;
  Recorder recorder;
  CachingAllocator allocator;
};

void expect_equal(const Replay& result, const trace::DeviceRecording& device, const std::string& name) {
  EXPECT_TRUE(result.complete) << name << ": " << result.why_not;
  EXPECT_FALSE(result.first_difference) << name << ": event " << result.first_difference->event.value << ": "
                                        << result.first_difference->what;
  EXPECT_EQ(result.events, device.events.size()) << name;
  EXPECT_EQ(result.segments_model, result.segments_real) << name;
  EXPECT_EQ(result.reserved_peak_model, result.reserved_peak_real) << name;
  EXPECT_TRUE(result.same_end) << name;
}

TEST(Replay, OfAWholeHistoryIsEqualUnderEverySetting) {
  for (const Case& c : cases()) {
    const Recorded recorded(c);
    const trace::DeviceRecording device = recorded.recorder.recording(recorded.allocator);
    const Replay result = replay(device, recording_of(device, c.settings), c.device);
    expect_equal(result, device, c.name);
    EXPECT_FALSE(result.reconstructed) << c.name;
    EXPECT_EQ(result.reserved_peak_real, recorded.allocator.stats().reserved_peak) << c.name;
  }
}

TEST(Replay, WorksOutWhatWasThereBeforeALostBeginning) {
  for (Case c : cases()) {
    c.settings.ties = Ties::LowestAddress;
    const Recorded recorded(c);
    for (const std::size_t lost : {1u, 10u, 500u, 1000u, 3000u}) {
      const std::string name = c.name + std::string(" without ") + std::to_string(lost);
      const trace::DeviceRecording device = recorded.recorder.recording(recorded.allocator, lost);
      const Replay result = replay(device, recording_of(device, c.settings), c.device);
      expect_equal(result, device, name);
      EXPECT_TRUE(result.reconstructed) << name;
    }
  }
}

// Two segments of one size, both older than the recording: the higher one is the older.
TEST(Replay, FindsTheOrderOfSegmentsOlderThanTheRecording) {
  Model model({}, 64_GiB, Addresses::LowestFit);
  const Allocation gap = model.take(40_MiB);
  const Allocation older = model.take(40_MiB);
  model.free(gap);
  model.allocator.empty_cache();
  const Allocation younger = model.take(40_MiB);
  ASSERT_LT(younger.address, older.address);
  const std::size_t lost = model.ears.events.size();
  model.free(younger);
  model.free(older);
  ASSERT_EQ(model.take(40_MiB).address, older.address);
  model.free(model.take(2_MiB));
  Recorder recorder;
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  const trace::DeviceRecording device = recorder.recording(model.allocator, lost);
  const Replay result = replay(device, recording_of(device, {}));
  expect_equal(result, device, "order");
  EXPECT_EQ(result.ties, Ties::OldestSegment);
}

TEST(Replay, NamesTheRuleForTiesThatAgrees) {
  for (const Ties ties : {Ties::LowestAddress, Ties::OldestBlock, Ties::OldestSegment}) {
    Case c{"ties", {}, 3_GiB};
    c.settings.ties = ties;
    const Recorded recorded(c, 10000);
    const trace::DeviceRecording device = recorded.recorder.recording(recorded.allocator);
    const Replay result = replay(device, recording_of(device, c.settings));
    expect_equal(result, device, "ties");
    EXPECT_EQ(result.ties, ties);
  }
}

TEST(Replay, OldLayoutsHaveTheOldRuleForTies) {
  Case c{"ties", {}, 3_GiB};
  const Recorded recorded(c, 10000);
  const trace::DeviceRecording device = recorded.recorder.recording(recorded.allocator);
  trace::Recording all = recording_of(device, c.settings);
  all.layout = trace::SnapshotLayout::C;
  const Replay result = replay(device, all);
  EXPECT_EQ(result.ties, Ties::LowestAddress);
  EXPECT_TRUE(result.first_difference);
}

// A recording of three allocations, for tests that change it.
struct Small {
  Small() {
    const Allocation a = std::get<Allocation>(model.allocator.allocate(30_MiB, StreamId{0}));
    model.allocator.allocate(4_MiB, StreamId{0});
    model.allocator.free(a.block);
    model.allocator.allocate(24_MiB, StreamId{0});
    for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
    device = recorder.recording(model.allocator);
  }
  Replay result() const { return replay(device, recording_of(device, {})); }
  template <class Event>
  Event& event(std::size_t at) {
    return std::get<Event>(device.events[at].what);
  }
  Model model;
  Recorder recorder;
  trace::DeviceRecording device;
};

TEST(Replay, OfASmallHistoryIsEqual) {
  const Small small;
  expect_equal(small.result(), small.device, "small");
  EXPECT_EQ(small.result().segments_real, 2u);
}

TEST(Replay, TellsASegmentOfAnotherSize) {
  Small small;
  small.event<trace::record::SegmentAllocation>(2).bytes = 22_MiB;
  trace::Segment& segment = small.device.segments[1];
  segment.size += 2_MiB;
  segment.blocks.back().size += 2_MiB;
  const Replay result = small.result();
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->event, EventId{2});
  EXPECT_EQ(result.first_difference->real, 22_MiB);
  EXPECT_EQ(result.first_difference->model, 20_MiB);
  EXPECT_EQ(result.first_difference->what, "segment_alloc of 22.00 MiB, the model has segment_alloc of 20.00 MiB");
  EXPECT_EQ(result.events, 2u);
  EXPECT_FALSE(result.same_end);
  EXPECT_TRUE(result.complete);
}

// Takes 60 MiB, frees them, and takes 24 MiB. These come from the free block, unless max_split forbids splitting it.
trace::DeviceRecording sixty_then_24(const CachingSettings& settings) {
  Model model(settings);
  Recorder recorder;
  model.free(model.take(60_MiB));
  model.take(24_MiB);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  return recorder.recording(model.allocator);
}

TEST(Replay, TellsASegmentThatOnlyTheModelTakes) {
  CachingSettings narrow;
  narrow.max_split = 24_MiB;
  const trace::DeviceRecording device = sixty_then_24({});
  const Replay result = replay(device, recording_of(device, narrow));
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->what,
            "no segment was taken or given back, the model has segment_alloc of 24.00 MiB");
  EXPECT_EQ(result.first_difference->event, EventId{4});
  EXPECT_EQ(result.first_difference->real, 0_B);
  EXPECT_EQ(result.reserved_peak_real, 60_MiB);
  EXPECT_EQ(result.reserved_peak_model, 84_MiB);
}

TEST(Replay, TellsASegmentThatTheModelHasNoNeedOf) {
  CachingSettings narrow;
  narrow.max_split = 24_MiB;
  const trace::DeviceRecording device = sixty_then_24(narrow);
  expect_equal(replay(device, recording_of(device, narrow)), device, "narrow");
  const Replay result = replay(device, recording_of(device, {}));
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->what, "segment_alloc of 24.00 MiB, the model had no need of it");
  EXPECT_EQ(result.first_difference->model, 0_B);
  EXPECT_EQ(result.segments_real, 2u);
  EXPECT_EQ(result.segments_model, 1u);
}

TEST(Replay, TellsAnAllocationElsewhere) {
  Small small;
  auto& last = small.event<trace::record::Allocation>(6);
  last.address = last.address + 6_MiB;
  trace::Segment& segment = small.device.segments[0];
  ASSERT_EQ(segment.blocks.size(), 2u);
  std::swap(segment.blocks[0], segment.blocks[1]);
  segment.blocks[0].address = segment.address;
  segment.blocks[1].address = last.address;
  const Replay result = small.result();
  EXPECT_FALSE(result.complete) << "a request takes the front of a free block";
  EXPECT_NE(result.why_not.find("event 6: an allocation that left free bytes before it"), std::string::npos)
      << result.why_not;
}

// The recording takes the higher and younger of two cached blocks of one size, against every rule for ties. Then the
// end is not the same, although it has the same blocks, because others of them are live.
TEST(Replay, OfTheSameBlocksOthersOfWhichAreLiveIsNotTheSameEnd) {
  Model model;
  Recorder recorder;
  const Allocation low = model.take(40_MiB);
  const Allocation high = model.take(40_MiB);
  model.free(low);
  model.free(high);
  ASSERT_EQ(model.take(40_MiB).address, low.address);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  trace::DeviceRecording device = recorder.recording(model.allocator);
  std::get<trace::record::Allocation>(device.events.back().what).address = high.address;
  ASSERT_EQ(device.segments.size(), 2u);
  std::swap(device.segments[0].blocks[0].state, device.segments[1].blocks[0].state);
  std::swap(device.segments[0].blocks[0].requested, device.segments[1].blocks[0].requested);
  const Replay result = replay(device, recording_of(device, {}));
  EXPECT_TRUE(result.complete) << result.why_not;
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->what, "alloc of 40.00 MiB, the model takes another block");
  EXPECT_EQ(result.events, device.events.size() - 1);
  EXPECT_FALSE(result.same_end);
}

TEST(Replay, SaysWhatInTheFileCannotBe) {
  const auto fault = [](auto change) {
    Small small;
    change(small);
    const Replay result = small.result();
    EXPECT_FALSE(result.complete);
    EXPECT_EQ(result.events, 0u);
    return result.why_not;
  };
  EXPECT_NE(fault([](Small& s) { s.device.segments[0].blocks.pop_back(); }).find("do not add up"), std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.device.segments.clear(); }).find("outside all segments"), std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.device.segments[0].pool = {0, 1}; }).find("private pool"), std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.device.segments.push_back(s.device.segments[0]); }).find("overlaps"),
            std::string::npos);
  EXPECT_NE(fault([](Small& s) {
              s.event<trace::record::SegmentAllocation>(0).bytes = Bytes{UINT64_MAX};
            }).find("event 0: a new segment that is not empty"),
            std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.event<trace::record::Free>(5).bytes = Bytes{UINT64_MAX}; }).find("event 5: a free"),
            std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.event<trace::record::Free>(5).bytes = 31_MiB; }).find("where no block was"),
            std::string::npos);
  EXPECT_NE(fault([](Small& s) { s.device.segments[0].blocks[0].size += 1_B; }).find("does not fit"),
            std::string::npos);
}

TEST(Replay, FollowsACacheThatIsEmptiedAtTheEnd) {
  Model model;
  Recorder recorder;
  model.free(model.take(60_MiB));
  model.allocator.empty_cache();
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  const trace::DeviceRecording device = recorder.recording(model.allocator);
  expect_equal(replay(device, recording_of(device, {})), device, "emptied");
}

TEST(Replay, OfNothingIsNothing) {
  const trace::DeviceRecording nothing;
  const Replay result = replay(nothing, recording_of(nothing, {}));
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.events, 0u);
  EXPECT_EQ(result.reserved_peak_model, 0_B);
}

// replay() must return an answer for any damaged file.
TEST(Replay, SurvivesDamagedRecordings) {
  std::mt19937_64 random(1);
  const Case c{"full", {}, 3_GiB};
  const Recorded recorded(c, 300);
  const trace::DeviceRecording whole = recorded.recorder.recording(recorded.allocator);
  for (int round = 0; round < 500; ++round) {
    trace::DeviceRecording device = whole;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % device.events.size();
      const std::size_t from = random() % device.events.size();
      switch (random() % 4) {
        case 0:
          device.events.erase(device.events.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 1:
          std::swap(device.events[at], device.events[from]);
          break;
        case 2:
          device.events[at] = device.events[from];
          break;
        default:
          if (auto* event = std::get_if<trace::record::Allocation>(&device.events[at].what)) {
            event->bytes = Bytes{random() >> random() % 64};
          }
      }
    }
    const Replay result = replay(device, recording_of(device, c.settings));
    EXPECT_LE(result.events, device.events.size());
    EXPECT_NO_THROW(what_if(device, c.settings));
  }
}

TEST(WhatIf, WithTheSameSettingsIsWhatWas) {
  const Case c{"plain", {}};
  const Recorded recorded(c, 3000, 1);
  const trace::DeviceRecording device = recorded.recorder.recording(recorded.allocator);
  CachingSettings settings;
  const WhatIf same = what_if(device, settings);
  EXPECT_EQ(same.live_peak, recorded.allocator.stats().allocated_peak);
  EXPECT_EQ(same.segments, recorded.allocator.stats().segments_taken);
  EXPECT_EQ(same.reserved_peak, recorded.allocator.stats().reserved_peak);
}

}  // namespace
}  // namespace ullage::sim
