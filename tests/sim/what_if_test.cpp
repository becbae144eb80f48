// SPDX-License-Identifier: Apache-2.0
#include "model.h"
#include "recorded.h"
#include "ullage/sim/replay.h"

namespace ullage::sim {
namespace {

TEST(WhatIf, ExpandableSegmentsTakeLessWhereHolesAre) {
  Model model;
  Recorder recorder;
  std::vector<Allocation> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(model.take(30_MiB));
  for (const Allocation& block : blocks) model.free(block);
  model.take(300_MiB);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  const trace::DeviceRecording device = recorder.recording(model.allocator);
  CachingSettings expandable;
  expandable.expandable_segments = true;
  EXPECT_EQ(what_if(device, {}).reserved_peak, 600_MiB);
  EXPECT_EQ(what_if(device, expandable).reserved_peak, 300_MiB);
  EXPECT_EQ(what_if(device, expandable).live_peak, 300_MiB);
}

TEST(WhatIf, StartsWithWhatWasLiveBefore) {
  Model model;
  Recorder recorder;
  model.take(40_MiB);
  const std::size_t lost = model.ears.events.size();
  model.take(60_MiB);
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  EXPECT_EQ(what_if(recorder.recording(model.allocator, lost), {}).live_peak, 100_MiB);
}

// The block got the whole segment, because less than 1 MiB would have been left. The model must ask for the request.
TEST(WhatIf, AsksForWhatWasLiveBeforeByItsRequestNotByItsBlock) {
  constexpr Bytes kRequest = 20_MiB - 512_KiB;
  Model model;
  Recorder recorder;
  model.take(kRequest);
  const std::size_t lost = model.ears.events.size();
  for (const AllocatorEvent& event : model.ears.events) recorder.heard(event);
  trace::DeviceRecording device = recorder.recording(model.allocator, lost);
  ASSERT_EQ(device.segments[0].blocks[0].size, 20_MiB);
  CachingSettings expandable;
  expandable.expandable_segments = true;
  EXPECT_EQ(what_if(device, {}).live_peak, 20_MiB);
  EXPECT_EQ(what_if(device, expandable).live_peak, kRequest);
  device.segments[0].blocks[0].requested = 0_B;  // as in files that do not state it
  EXPECT_EQ(what_if(device, expandable).live_peak, 20_MiB);
  device.segments[0].blocks[0].requested = 21_MiB;  // as in damaged ones
  EXPECT_EQ(what_if(device, expandable).live_peak, 20_MiB);
}

}  // namespace
}  // namespace ullage::sim
