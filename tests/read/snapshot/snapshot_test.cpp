// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/snapshot/snapshot.h"

#include "read/pickle_text.h"
#include "real.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

namespace ullage::read {
namespace {

using pickled::dict;
using pickled::integer;
using pickled::list;
using pickled::none;
using pickled::text;
using pickled::truth;
using pickled::tuple;
using trace::SnapshotLayout;

trace::Recording read_snapshot_of(const std::string& value) {
  auto recording = read_snapshot(pickled::bytes(pickled::whole(value)), "x.pickle");
  EXPECT_TRUE(recording) << recording.error().text();
  return recording ? std::move(recording).value() : trace::Recording{};
}

trace::Recording read_file(const std::filesystem::path& path) {
  auto recording = read_snapshot(bytes_of(path), path.filename());
  EXPECT_TRUE(recording) << recording.error().text();
  return recording ? std::move(recording).value() : trace::Recording{};
}

// Checks what must hold for every recording.
void expect_sound(const trace::Recording& recording) {
  for (std::size_t d = 0; d < recording.devices.size(); ++d) {
    const auto& device = recording.devices[d];
    EXPECT_TRUE(!device.segments.empty() || !device.events.empty());
    if (d > 0) {
      EXPECT_LT(recording.devices[d - 1].device, device.device);
    }
    EXPECT_TRUE(std::ranges::is_sorted(device.segments, {}, &trace::Segment::address));
    for (const auto& segment : device.segments) {
      EXPECT_TRUE(std::ranges::is_sorted(segment.blocks, {}, &trace::Block::address));
      for (const auto& block : segment.blocks) EXPECT_LT(block.stack.value, recording.stacks.stack_count());
    }
    for (const auto& event : device.events) EXPECT_LT(event.stack.value, recording.stacks.stack_count());
  }
}

struct Expected {
  const char* file;
  SnapshotLayout layout;
  std::size_t segments, events;
  double reserved_mib;
};

void expect(const trace::Recording& recording, const Expected& expected) {
  expect_sound(recording);
  std::size_t segments = 0, events = 0;
  Bytes reserved;
  for (const auto& device : recording.devices) {
    segments += device.segments.size();
    events += device.events.size();
    for (const auto& segment : device.segments) reserved += segment.size;
  }
  EXPECT_EQ(recording.layout, expected.layout);
  EXPECT_EQ(segments, expected.segments);
  EXPECT_EQ(events, expected.events);
  EXPECT_EQ(reserved, Bytes{std::uint64_t(expected.reserved_mib * 10 + 0.5)} * (1_MiB).count / 10);
}

// The table of shared/real/README.md, whose figures another reader counted.
constexpr Expected kReal[] = {
    {"Felixburton7__voxelflex__dump_snapshot.pickle", SnapshotLayout::D, 3, 0, 44.0},
    {"LfieLike__SketchKV2__my_snapshot.pickle", SnapshotLayout::C, 259, 1, 16340.0},
    {"MAGMA27__assignment2-systems__memory_snapshot.pickle", SnapshotLayout::D, 216, 5163, 13524.0},
    {"Maphsge4__select_n__snapshot.5a601013.pickle", SnapshotLayout::B, 82, 4496, 2648.0},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_and_backward_memory_snapshot_100."
     "pickle",
     SnapshotLayout::D, 65, 11300, 750.0},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_and_backward_memory_snapshot_200_"
     "mixed_"
     "precision.pickle",
     SnapshotLayout::D, 88, 12976, 1150.0},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_100.pickle",
     SnapshotLayout::D, 31, 2304, 442.0},
    {"NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_200_mixed_precision."
     "pickle",
     SnapshotLayout::D, 47, 2950, 708.0},
    {"SunnySood80__unsupervised_finetune_resnet50__dump_snapshot.pickle", SnapshotLayout::D, 0, 0, 0.0},
    {"Wedsonlin__assignment2-systems__results__medium_512_inference_memory_snapshot.pickle", SnapshotLayout::D, 101,
     4998, 1890.0},
    {"Wedsonlin__assignment2-systems__results__medium_512_training_memory_snapshot.pickle", SnapshotLayout::D, 400,
     22332, 12074.0},
    {"Yiyi-philosophy__LLM-inference__1.3b_snapshot.pickle", SnapshotLayout::A, 257, 1, 7256.0},
    {"ZijianDu__Attention__memory.pickle", SnapshotLayout::B, 499, 0, 15484.0},
    {"albi2__thesis-text-to-SQL__dump_snapshot.pickle", SnapshotLayout::D, 2, 0, 22.0},
    {"cranberrii__ftcourse__memory_snapshot.pickle", SnapshotLayout::B, 215, 10307, 6172.0},
    {"facebookresearch__mosaic__test__snapshots__output.pickle", SnapshotLayout::X, 5, 1040, 250.0},
    {"jogregoire__How-Diffusion-Models-Work__my_snapshot.pickle", SnapshotLayout::B, 7, 1, 32.0},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_forward.pickle", SnapshotLayout::D, 516, 4657,
     18756.0},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_forward_mixed.pickle", SnapshotLayout::D, 688, 5992,
     23122.0},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_fullstep.pickle", SnapshotLayout::D, 1010, 19342,
     58280.0},
    {"kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx256_fullstep_.pickle", SnapshotLayout::D, 1021, 20128,
     58198.0},
    {"kkaitlyn111__cs336-a2-systems__memory_small_forward.pickle", SnapshotLayout::D, 30, 8507, 1056.0},
    {"notHanmin__assignment2-systems__memory_snapshot.pickle", SnapshotLayout::D, 999, 19464, 22738.0},
    {"shreyansh26__MLSys-Experiments__model_memory_usage__profile_grad.pkl", SnapshotLayout::C, 7, 33, 4234.0},
    {"shreyansh26__MLSys-Experiments__model_memory_usage__profile_no_grad.pkl", SnapshotLayout::C, 7, 33, 4234.0},
    {"silmont2000__assignment2-systems__mem_snapshot.pickle", SnapshotLayout::D, 9, 97, 3606.0},
    {"silmont2000__assignment2-systems__memory_forward_bf16_128.pickle", SnapshotLayout::D, 43, 2811, 822.0},
    {"silmont2000__assignment2-systems__memory_forward_fp32_128.pickle", SnapshotLayout::D, 29, 2043, 582.0},
};

TEST(Snapshot, RealFilesHaveTheSegmentsEventsAndBytesOfTheTable) {
  ULLAGE_NEEDS_REAL_FILES();
  for (const Expected& expected : kReal) {
    SCOPED_TRACE(expected.file);
    const auto recording = read_file(real_folder() / "snapshots" / expected.file);
    expect(recording, expected);
    // torch wrote consistent totals in all files; the one that is not consistent was made by hand (layout X).
    EXPECT_EQ(recording.inconsistencies.empty(), expected.layout != SnapshotLayout::X);
  }
}

TEST(Snapshot, EveryLayoutIsReadFromTheSmallCopies) {
  constexpr Expected kSmall[] = {
      {"silmont2000_segment_list.pickle", SnapshotLayout::SegmentList, 9, 0, 3606.0},
      {"yiyi_layout_a_cut.pickle", SnapshotLayout::A, 12, 1, 540.0},
      {"jogregoire_layout_b.pickle", SnapshotLayout::B, 7, 1, 32.0},
      {"shreyansh26_layout_c.pickle", SnapshotLayout::C, 7, 33, 4234.0},
      {"silmont2000_layout_d.pickle", SnapshotLayout::D, 9, 97, 3606.0},
      {"mosaic_layout_x_cut.pickle", SnapshotLayout::X, 5, 25, 250.0},
      {"felixburton7_segments_only.pickle", SnapshotLayout::D, 3, 0, 44.0},
      {"albi2_two_segments.pickle", SnapshotLayout::D, 2, 0, 22.0},
      {"sunnysood80_empty.pickle", SnapshotLayout::D, 0, 0, 0.0},
  };
  for (const Expected& expected : kSmall) {
    SCOPED_TRACE(expected.file);
    expect(read_file(data_folder() / "snapshots" / expected.file), expected);
  }
}

TEST(Snapshot, KeysTellTheVersionOfTorch) {
  const auto torch = [](const char* file) { return read_file(data_folder() / "snapshots" / file).torch; };
  EXPECT_EQ(torch("yiyi_layout_a_cut.pickle"), "2.0");
  EXPECT_EQ(torch("jogregoire_layout_b.pickle"), "2.2");
  EXPECT_EQ(torch("shreyansh26_layout_c.pickle"), "2.3 to 2.5");
  EXPECT_EQ(torch("silmont2000_layout_d.pickle"), "2.6 or later");
  EXPECT_EQ(torch("silmont2000_segment_list.pickle"), "");
}

std::string block(std::int64_t address, std::int64_t size, std::int64_t requested, const char* state) {
  return dict({{"address", integer(address)},
               {"size", integer(size)},
               {"requested_size", integer(requested)},
               {"state", text(state)},
               {"frames", list({})}});
}

TEST(Snapshot, EveryFieldOfASegmentIsKept) {
  const std::string frame = dict({{"filename", text("a.py")}, {"name", text("f")}, {"line", integer(3)}});
  const std::string blocks =
      list({block(0x1000, 512, 5, "active_allocated"), block(0x1200, 512, 6, "active_pending_free"),
            block(0x1400, 1024, 7, "active_awaiting_free"), block(0x1800, 2048, 0, "inactive")});
  const auto recording =
      read_snapshot_of(dict({{"segments", list({dict({{"device", integer(3)},
                                                      {"address", integer(0x1000)},
                                                      {"total_size", integer(4096)},
                                                      {"allocated_size", integer(512)},
                                                      {"active_size", integer(2048)},
                                                      {"requested_size", integer(18)},
                                                      {"stream", integer(77)},
                                                      {"segment_type", text("small")},
                                                      {"segment_pool_id", tuple({integer(1), integer(2)})},
                                                      {"is_expandable", truth(true)},
                                                      {"frames", list({frame})},
                                                      {"a key of the future", none()},
                                                      {"blocks", blocks}})})},
                             {"device_traces", list({})}}));
  EXPECT_EQ(recording.inconsistencies, std::vector<std::string>{});
  ASSERT_EQ(recording.devices.size(), 1u);
  EXPECT_EQ(recording.devices[0].device, 3u);
  const trace::Segment& segment = recording.devices[0].segments.at(0);
  EXPECT_EQ(segment.address, Address{0x1000});
  EXPECT_EQ(segment.size, 4_KiB);
  EXPECT_EQ(segment.allocated, 512_B);
  EXPECT_EQ(segment.active, 2_KiB);
  EXPECT_EQ(segment.requested, 18_B);
  EXPECT_EQ(segment.stream, trace::StreamId{77});
  EXPECT_TRUE(segment.small);
  EXPECT_TRUE(segment.expandable);
  EXPECT_EQ(segment.pool, std::pair(std::uint64_t{1}, std::uint64_t{2}));
  ASSERT_EQ(recording.stacks.frames(segment.stack).size(), 1u);
  EXPECT_EQ(recording.stacks.frame(recording.stacks.frames(segment.stack)[0]), (trace::Frame{"a.py", "f", 3}));
  ASSERT_EQ(segment.blocks.size(), 4u);
  using enum trace::Block::State;
  const trace::Block::State states[] = {Active, PendingFree, PendingFree, Inactive};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(segment.blocks[i].state, states[i]);
  EXPECT_EQ(segment.blocks[2].address, Address{0x1400});
  EXPECT_EQ(segment.blocks[2].size, 1_KiB);
  EXPECT_EQ(segment.blocks[2].requested, 7_B);
}

TEST(Snapshot, BlocksWithoutAddressesStandOneBehindTheOther) {
  const auto old_block = [](std::int64_t size, const char* state, const std::string& function) {
    const std::string frames =
        list({dict({{"filename", text("a.py")}, {"name", text(function)}, {"line", integer(3)}})});
    const std::string older = dict({{"addr", integer(1)}, {"real_size", integer(9)}, {"frames", list({})}});
    const std::string newest = dict({{"addr", integer(1)}, {"real_size", integer(size - 1)}, {"frames", frames}});
    return dict({{"size", integer(size)}, {"state", text(state)}, {"history", list({newest, older})}});
  };
  const auto recording = read_snapshot_of(
      list({dict({{"device", integer(0)},
                  {"address", integer(0x2000)},
                  {"total_size", integer(1536)},
                  {"blocks", list({old_block(512, "active_allocated", "f"), old_block(1024, "inactive", "g")})}})}));
  EXPECT_EQ(recording.layout, SnapshotLayout::SegmentList);
  EXPECT_EQ(recording.torch, "2.0");
  EXPECT_EQ(recording.inconsistencies, std::vector<std::string>{});  // missing totals are summed from the blocks
  const trace::Segment& segment = recording.devices.at(0).segments.at(0);
  EXPECT_EQ(segment.allocated, 512_B);
  EXPECT_EQ(segment.blocks.at(1).address, Address{0x2200});
  EXPECT_EQ(segment.blocks.at(0).requested, 511_B);
  const auto frames = recording.stacks.frames(segment.blocks.at(1).stack);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(recording.stacks.frame(frames[0]).function, "g");
}

std::string event(const char* action, std::int64_t size) {
  return dict({{"action", text(action)}, {"addr", integer(0x5000)}, {"size", integer(size)}, {"stream", integer(9)}});
}

TEST(Snapshot, EveryKindOfEventIsRead) {
  const std::string oom = dict({{"action", text("oom")},
                                {"device_free", integer(100)},
                                {"size", integer(9)},
                                {"stream", integer(8)},
                                {"time_us", integer(-5)},
                                {"user_metadata", text("")}});
  const auto recording = read_snapshot_of(dict(
      {{"segments", list({})},
       {"device_traces",
        list({list({}), list({event("alloc", 1), event("free_requested", 2), event("free_completed", 3),
                              event("segment_alloc", 4), event("segment_free", 5), event("segment_map", 6),
                              event("segment_unmap", 7), event("snapshot", 8), oom, event("of the future", 1)})})}}));
  ASSERT_EQ(recording.devices.size(), 1u);  // the first has neither segments nor events
  EXPECT_EQ(recording.devices[0].device, 1u);
  const auto& events = recording.devices[0].events;
  ASSERT_EQ(events.size(), 9u);
  using namespace trace::record;
  const auto holds = [&](std::size_t i, auto kind, Bytes bytes) {
    const auto* one = std::get_if<decltype(kind)>(&events[i].what);
    ASSERT_NE(one, nullptr) << i;
    EXPECT_EQ(one->bytes, bytes);
    EXPECT_EQ(one->address, Address{0x5000});
    EXPECT_EQ(one->stream, trace::StreamId{9});
    EXPECT_EQ(events[i].at, std::nullopt);
  };
  holds(0, Allocation{}, 1_B);
  holds(1, FreeRequest{}, 2_B);
  holds(2, Free{}, 3_B);
  holds(3, SegmentAllocation{}, 4_B);
  holds(4, SegmentFree{}, 5_B);
  holds(5, SegmentMap{}, 6_B);
  holds(6, SegmentUnmap{}, 7_B);
  EXPECT_EQ(std::get<SnapshotTaken>(events[7].what).reserved, 8_B);
  EXPECT_EQ(std::get<trace::record::OutOfMemory>(events[8].what).requested, 9_B);
  EXPECT_EQ(std::get<trace::record::OutOfMemory>(events[8].what).device_free, 100_B);
  EXPECT_EQ(std::get<trace::record::OutOfMemory>(events[8].what).stream, trace::StreamId{8});
  EXPECT_EQ(events[8].at, trace::Microseconds{-5});
  EXPECT_EQ(recording.torch, "2.10 or later");
  EXPECT_EQ(recording.inconsistencies,
            std::vector<std::string>{"events of a kind that is not known, \"of the future\": 1 left out"});
}

TEST(Snapshot, SegmentsOfSeveralDevicesAreSortedByAddress) {
  const auto segment = [](std::int64_t device, std::int64_t address) {
    return dict({{"device", integer(device)},
                 {"address", integer(address)},
                 {"total_size", integer(512)},
                 {"blocks", list({block(address, 512, 0, "inactive")})}});
  };
  const auto recording = read_snapshot_of(
      dict({{"segments", list({segment(1, 0x9000), segment(0, 0x3000), segment(1, 0x1000)})},
            {"device_traces", list({list({event("alloc", 1)}), list({}), list({event("alloc", 2)})})}}));
  ASSERT_EQ(recording.devices.size(), 3u);
  EXPECT_EQ(recording.devices[0].events.size(), 1u);
  ASSERT_EQ(recording.devices[1].segments.size(), 2u);
  EXPECT_EQ(recording.devices[1].segments[0].address, Address{0x1000});
  EXPECT_EQ(recording.devices[2].device, 2u);
  expect_sound(recording);
}

TEST(Snapshot, BlocksAreSortedByAddress) {
  const std::string blocks = list({block(0x1200, 512, 0, "inactive"), block(0x1000, 512, 1, "active_allocated")});
  const auto recording =
      read_snapshot_of(list({dict({{"address", integer(0x1000)}, {"total_size", integer(1024)}, {"blocks", blocks}})}));
  EXPECT_EQ(recording.devices.at(0).segments.at(0).blocks.at(0).address, Address{0x1000});
  EXPECT_EQ(recording.inconsistencies, std::vector<std::string>{});
  expect_sound(recording);
}

TEST(Snapshot, AddressesInTheUpperHalfAreReadWithAndWithoutSign) {
  const std::string below_zero = dict({{"action", text("alloc")}, {"addr", integer(-4096)}, {"size", integer(512)}});
  const std::string nine_bytes =
      dict({{"action", text("alloc")},
            {"addr", "\x8a\x09" + pickled::little(UINT64_MAX - 4095, 8) + std::string(1, '\0')},
            {"size", integer(512)}});
  const auto recording = read_snapshot_of(dict({{"device_traces", list({list({below_zero, nine_bytes})})}}));
  for (const auto& one : recording.devices.at(0).events) {
    EXPECT_EQ(std::get<trace::record::Allocation>(one.what).address, Address{UINT64_MAX - 4095});
  }
}

TEST(Snapshot, SettingsAndAnnotationsAreKept) {
  const auto recording = read_snapshot_of(dict(
      {{"segments", list({})},
       {"device_traces", list({})},
       {"allocator_settings", dict({{"PYTORCH_CUDA_ALLOC_CONF", text("max_split_size_mb:64")},
                                    {"max_split_size", integer(67108864)},
                                    {"garbage_collection_threshold", pickled::real().replace(1, 2, "\x3f\xe8")},
                                    {"expandable_segments", truth(true)},
                                    {"roundup_power2_divisions", dict({{"1", integer(0)}, {"32768", integer(4)}})}})},
       {"external_annotations", list({dict({{"stage", text("START")},
                                            {"name", text("Optimizer.step#SGD.step")},
                                            {"device", integer(2)},
                                            {"time_us", integer(17)}}),
                                      dict({{"stage", text("END")},
                                            {"name", text("Optimizer.step#SGD.step")},
                                            {"device", integer(2)},
                                            {"time_us", integer(18)}})})}}));
  ASSERT_TRUE(recording.settings);
  EXPECT_EQ(recording.settings->text, "max_split_size_mb:64");
  EXPECT_EQ(recording.settings->max_split, 64_MiB);
  EXPECT_EQ(recording.settings->garbage_collection_threshold, 0.75);
  EXPECT_TRUE(recording.settings->expandable_segments);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> divisions = {{1, 0}, {32768, 4}};
  EXPECT_EQ(recording.settings->roundup_power2_divisions, divisions);
  ASSERT_EQ(recording.annotations.size(), 2u);
  EXPECT_TRUE(recording.annotations[0].start);
  EXPECT_FALSE(recording.annotations[1].start);
  EXPECT_EQ(recording.annotations[1].name, "Optimizer.step#SGD.step");
  EXPECT_EQ(recording.annotations[1].device, 2);
  EXPECT_EQ(recording.annotations[1].at, trace::Microseconds{18});
}

TEST(Snapshot, MinusOneIsNoLimitOfSplitting) {
  const auto recording = read_file(data_folder() / "snapshots" / "silmont2000_layout_d.pickle");
  ASSERT_TRUE(recording.settings);
  EXPECT_EQ(recording.settings->max_split, std::nullopt);
  EXPECT_EQ(recording.settings->roundup_power2_divisions.size(), 16u);
  const auto limited = read_file(data_folder() / "snapshots" / "sunnysood80_empty.pickle");
  EXPECT_EQ(limited.settings->max_split, 64_MiB);
  EXPECT_EQ(limited.settings->text, "expandable_segments:True,max_split_size_mb:64");
}

}  // namespace
}  // namespace ullage::read
