// SPDX-License-Identifier: Apache-2.0
// Expandable segments: pages are mapped and unmapped within a range. A page has 2 MiB in the small pool, else the size
// of a large segment.
#include "model.h"

namespace ullage::sim {
namespace {

CachingSettings expandable() {
  CachingSettings settings;
  settings.expandable_segments = true;
  return settings;
}

TEST(CachingExpandable, MapsWholePagesAsTheyAreNeeded) {
  Model model(expandable());
  const Allocation small = model.take(1_MiB);
  const Allocation a = model.take(19_MiB);
  const Allocation b = model.take(30_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentMapped), (std::vector{2_MiB, 20_MiB, 40_MiB}));
  EXPECT_EQ(b.address, a.address + 19_MiB) << "the second begins in the page of the first";
  EXPECT_EQ(model.block_size(b), 30_MiB);
  EXPECT_EQ(model.reserved(), 62_MiB);
  EXPECT_EQ(model.allocator.stats().segments, 0u);
  EXPECT_EQ(model.ears.count(Action::SegmentAllocated), 0u);
  EXPECT_NE(small.address, a.address);
}

TEST(CachingExpandable, SplitsOffEveryRestFrom512Bytes) {
  Model model(expandable());
  const Allocation a = model.take(20_MiB - 512_B);
  EXPECT_EQ(model.block_size(a), 20_MiB - 512_B);
  model.take(40_MiB + 512_B);
  EXPECT_EQ(model.ears.sizes(Action::SegmentMapped), (std::vector{20_MiB, 40_MiB}));
}

TEST(CachingExpandable, PageSizeIsThatOfALargeSegment) {
  CachingSettings settings = expandable();
  settings.large_segment = 40_MiB;
  Model model(settings);
  model.take(2_MiB);
  model.take(1_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentMapped), (std::vector{40_MiB, 2_MiB}));
}

TEST(CachingExpandable, GrowsTheFreeEndInsteadOfANewSegment) {
  Model model(expandable());
  const Allocation first = model.take(20_MiB);
  const Allocation second = model.take(20_MiB);
  model.free(second);
  const Allocation third = model.take(60_MiB);
  EXPECT_EQ(third.address, first.address + 20_MiB);
  EXPECT_EQ(model.reserved(), 80_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentMapped), (std::vector{20_MiB, 20_MiB, 40_MiB}));
}

TEST(CachingExpandable, UnmapsOnlyWholePages) {
  Model model(expandable());
  const Allocation a = model.take(10_MiB);
  const Allocation b = model.take(45_MiB);  // from 10 to 55 MiB; pages are mapped up to 60
  const Allocation c = model.take(5_MiB);
  EXPECT_EQ(c.address, a.address + 55_MiB);
  model.free(b);
  model.allocator.empty_cache();
  expect_sound(model.allocator);
  EXPECT_EQ(model.ears.sizes(Action::SegmentUnmapped), std::vector{20_MiB});
  EXPECT_EQ(model.ears.addresses(Action::SegmentUnmapped), std::vector{a.address + 20_MiB});
  EXPECT_EQ(model.reserved(), 40_MiB);
  EXPECT_EQ(model.take(10_MiB).address, a.address + 40_MiB) << "the back of the hole, which cannot grow, comes first";
  EXPECT_EQ(model.take(30_MiB).address, a.address + 10_MiB) << "the front of the hole grows over what was unmapped";
  EXPECT_EQ(model.reserved(), 60_MiB);
}

TEST(CachingExpandable, ARangeWithoutPagesIsGivenUp) {
  Model model(expandable(), 64_GiB, Addresses::LowestFit);
  const Allocation block = model.take(50_MiB);
  model.free(block);
  model.allocator.empty_cache();
  EXPECT_EQ(model.reserved(), 0_B);
  EXPECT_TRUE(model.allocator.blocks().empty());
  EXPECT_EQ(model.device.available(), 64_GiB);
  EXPECT_EQ(model.take(50_MiB, 1).address, block.address) << "its addresses can be had again";
}

TEST(CachingExpandable, OfFreeBlocksPrefersTheOneWithLessRoomToGrow) {
  Model model(expandable());
  const Allocation a = model.take(60_MiB);
  const Allocation wall = model.take(20_MiB);
  const Allocation b = model.take(36_MiB);  // the last mapped block; the unmapped rest of the range follows
  model.free(a);
  model.free(b);
  ASSERT_LT(a.address, wall.address);
  EXPECT_EQ(model.take(30_MiB).address, a.address) << "although the last one is a better fit";
}

TEST(CachingExpandable, OfFreeBlocksWithEqualRoomTakesTheFirst) {
  Model model(expandable());
  const Allocation first = model.take(30_MiB);
  model.take(10_MiB);
  const Allocation second = model.take(30_MiB);
  model.take(10_MiB);
  model.free(second);
  model.free(first);
  ASSERT_LT(first.address, second.address);
  EXPECT_EQ(model.take(30_MiB).address, first.address);
}

TEST(CachingExpandable, ADeviceThatIsFullKeepsNoHalfOfTheRequest) {
  Model model(expandable(), 100_MiB);
  const Allocation held = model.take(60_MiB);
  const Shortage shortage = model.fail(60_MiB);
  EXPECT_EQ(shortage.reason, Shortage::Reason::DeviceFull);
  EXPECT_EQ(model.reserved(), 60_MiB);
  EXPECT_EQ(model.device.available(), 40_MiB);
  EXPECT_EQ(model.block_size(held), 60_MiB);
  EXPECT_EQ(model.block_size(model.take(40_MiB)), 40_MiB);
}

TEST(CachingExpandable, FreesPagesOfOnePoolForTheOther) {
  Model model(expandable(), 42_MiB);
  model.free(model.take(1_MiB));
  model.free(model.take(40_MiB));
  model.take(1_MiB);
  std::vector<Allocation> small;
  for (int i = 0; i < 5; ++i) small.push_back(model.take(1_MiB));
  EXPECT_EQ(model.ears.sizes(Action::SegmentUnmapped), std::vector{40_MiB});
  EXPECT_EQ(model.allocator.stats().retries, 1u);
}

// A range has 1 1/8 of the device's bytes. A request that does not fit is tried twice, each time in a new range.
TEST(CachingExpandable, ARangeTooSmallForARequestStaysUnlessToldOtherwise) {
  const auto distance = [](bool keeps) {
    CachingSettings settings = expandable();
    settings.keeps_ranges_too_small = keeps;
    Model model(settings, 160_MiB, Addresses::LowestFit);
    const Allocation held = model.take(20_MiB, 0);
    model.fail(1_GiB, 1);
    return model.take(20_MiB, 2).address - held.address;
  };
  EXPECT_EQ(distance(true), 540_MiB);
  EXPECT_EQ(distance(false), 180_MiB);
}

TEST(CachingExpandable, ASeededRangeMapsAndMerges) {
  using State = CachingAllocator::SeedPiece::State;
  Model model(expandable());
  const Address base{1ull << 40};
  const auto live =
      model.allocator.seed({base,
                            StreamId{0},
                            false,
                            true,
                            {{15_MiB, 15_MiB, State::Live}, {5_MiB, {}, State::Free}, {200_MiB, {}, State::Unmapped}}});
  ASSERT_EQ(live.size(), 1u);
  EXPECT_EQ(model.reserved(), 20_MiB);
  EXPECT_EQ(model.take(10_MiB).address, base + 15_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentMapped), std::vector{20_MiB});
  EXPECT_EQ(model.ears.addresses(Action::SegmentMapped), std::vector{base + 20_MiB});
}

}  // namespace
}  // namespace ullage::sim
