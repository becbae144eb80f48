// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/layout.h"

#include "model.h"
#include "recorded.h"

namespace ullage::sim {
namespace {

using State = Layout::State;

TEST(Layout, GivesABlockTheBytesThatStoodUnusedBehindIt) {
  Model model;
  Recorder recorder;
  const Allocation kept = model.take(20_MiB - 512_B - 512_KiB);  // its block has 20 MiB
  const std::size_t lost = model.ears.events.size();
  model.free(kept);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  const trace::DeviceRecording device = recorder.recording(model.allocator, lost);
  Layout layout(device, {});
  layout.undo_all();
  EXPECT_EQ(layout.fault(), "");
  ASSERT_EQ(layout.segments().size(), 1u);
  ASSERT_EQ(layout.segments()[0].pieces.size(), 1u);
  EXPECT_EQ(layout.segments()[0].pieces[0].state, State::Live);
  EXPECT_EQ(layout.segments()[0].pieces[0].size, 20_MiB);
  EXPECT_EQ(layout.segments()[0].pieces[0].requested, 20_MiB - 512_B - 512_KiB);
}

// As above, but another block follows the unused bytes and is freed first. Undoing the events shows that block again,
// so the unused bytes before it must belong to the kept one.
TEST(Layout, GivesABlockTheBytesBetweenItAndTheNext) {
  constexpr Bytes kRequest = 20_MiB - 512_KiB;
  Model model;
  Recorder recorder;
  model.free(model.take(60_MiB));
  const Allocation front = model.take(20_MiB);
  const Allocation next = model.take(30_MiB);
  model.free(front);
  const Allocation kept = model.take(kRequest);
  ASSERT_EQ(kept.address, front.address);
  ASSERT_EQ(model.block_size(kept), 20_MiB);
  const std::size_t lost = model.ears.events.size();
  model.free(next);
  model.free(kept);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  const trace::DeviceRecording device = recorder.recording(model.allocator, lost);
  Layout layout(device, {});
  layout.undo_all();
  EXPECT_EQ(layout.fault(), "");
  ASSERT_EQ(layout.segments().size(), 1u);
  const std::vector<Layout::Piece> pieces = layout.segments()[0].pieces;
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].size, 20_MiB);
  EXPECT_EQ(pieces[0].requested, kRequest);
  EXPECT_EQ(pieces[1].size, 30_MiB);
  EXPECT_EQ(pieces[2].state, State::Free);
}

TEST(Layout, RefusesBlocksOffTheUnitOf512Bytes) {
  trace::DeviceRecording device;
  trace::Segment segment;
  segment.address = Address{2ull << 20};
  segment.size = 2_MiB;
  const auto inactive = trace::Block::State::Inactive;
  const auto fault_with = [&](Bytes first) {
    segment.blocks = {{segment.address, first, first, trace::Block::State::Active, {}},
                      {segment.address + first, 2_MiB - first, {}, inactive, {}}};
    device.segments = {segment};
    return Layout(device, {}).fault();
  };
  EXPECT_EQ(fault_with(1_MiB + 512_B), "");
  EXPECT_NE(fault_with(1_MiB + 256_B).find("a block that does not fit its segment"), std::string::npos);
}

TEST(Layout, RefusesEventsThatCannotHaveLedToTheSegments) {
  using namespace trace::record;
  const Address at{4ull << 20};
  const auto fault_of = [&](auto event) {
    trace::DeviceRecording device;
    trace::Segment segment;
    segment.address = at;
    segment.size = 4_MiB;
    segment.blocks = {{at, 2_MiB, {}, trace::Block::State::Inactive, {}},
                      {at + 2_MiB, 2_MiB, 2_MiB, trace::Block::State::Active, {}}};
    device.segments = {segment};
    device.events.push_back({event, std::nullopt, {}});
    Layout layout(device, {});
    EXPECT_EQ(layout.fault(), "");
    layout.undo_all();
    return layout.fault();
  };
  EXPECT_EQ(fault_of(SegmentAllocation{at, 2_MiB, {}}),
            "event 0: a new segment that is not empty, or not there, at 0x400000, 2.00 MiB");
  EXPECT_EQ(fault_of(SegmentFree{Address{2ull << 20}, 4_MiB, {}}),
            "event 0: a segment given back where another is at 0x200000, 4.00 MiB");
  EXPECT_EQ(fault_of(Free{at + 2_MiB, 2_MiB, {}}), "event 0: a free where no block was at 0x600000, 2.00 MiB");
}

}  // namespace
}  // namespace ullage::sim
