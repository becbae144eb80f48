// SPDX-License-Identifier: Apache-2.0
// What the allocator does if the device or a limit refuses: which segments it frees, and in which order.
#include "model.h"

namespace ullage::sim {
namespace {

CachingSettings with_max_split(Bytes size) {
  CachingSettings settings;
  settings.max_split = size;
  return settings;
}

TEST(CachingRelease, EmptyCacheGivesBackWholeFreeSegmentsLargePoolFirst) {
  Model model;
  const Allocation small = model.take(1_MiB);
  const Allocation large = model.take(40_MiB);
  const Allocation larger = model.take(60_MiB);
  const Allocation part = model.take(2_MiB);
  model.take(2_MiB);
  for (const Allocation& block : {small, larger, large, part}) model.free(block);
  model.allocator.empty_cache();
  expect_sound(model.allocator);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), (std::vector{40_MiB, 60_MiB, 2_MiB}));
  EXPECT_EQ(model.reserved(), 20_MiB) << "the segment in use stays";
  EXPECT_EQ(model.allocator.stats().segments, 1u);
}

TEST(CachingRelease, EmptyCacheGoesByStream) {
  Model model;
  const Allocation second = model.take(40_MiB, 9);
  const Allocation first = model.take(60_MiB, 4);
  model.free(second);
  model.free(first);
  model.allocator.empty_cache();
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), (std::vector{60_MiB, 40_MiB}));
}

TEST(CachingRelease, AFullDeviceGetsCachedSegmentsBackAndIsAskedAgain) {
  Model model({}, 100_MiB);
  model.free(model.take(60_MiB));
  const Allocation block = model.take(80_MiB);
  EXPECT_EQ(model.block_size(block), 80_MiB);
  EXPECT_EQ(model.allocator.stats().retries, 1u);
  EXPECT_EQ(model.allocator.stats().out_of_memory, 0u);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), std::vector{60_MiB});
}

TEST(CachingRelease, PendingBlocksAreWaitedForBeforeTheyAreGivenBack) {
  Model model({}, 100_MiB, Addresses::Growing, 1000);
  const Allocation pending = model.take(60_MiB);
  model.allocator.record_stream(pending.block, StreamId{1});
  model.free(pending);
  model.take(80_MiB);
  EXPECT_EQ(model.ears.count(Action::FreeCompleted), 1u);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), std::vector{60_MiB});
}

TEST(CachingRelease, ShortageTellsTheFiguresAndLeavesTheRest) {
  Model model({}, 100_MiB);
  const Allocation held = model.take(60_MiB - 5_B);
  model.free(model.take(30_MiB));
  const Shortage shortage = model.fail(41_MiB - 1_B);
  EXPECT_EQ(shortage.reason, Shortage::Reason::DeviceFull);
  EXPECT_EQ(shortage.requested, 41_MiB - 1_B);
  EXPECT_EQ(shortage.rounded, 41_MiB);
  EXPECT_EQ(shortage.segment, 42_MiB);
  EXPECT_EQ(shortage.allocated, 60_MiB);
  EXPECT_EQ(shortage.reserved, 60_MiB) << "what was cached is given back";
  EXPECT_EQ(shortage.device_free, 40_MiB);
  EXPECT_EQ(model.allocator.stats().retries, 1u);
  EXPECT_EQ(model.allocator.stats().out_of_memory, 1u);
  const AllocatorEvent told{Action::OutOfMemory, Address{}, 41_MiB, StreamId{0}, 40_MiB};
  EXPECT_EQ(model.ears.events.back(), told);
  EXPECT_EQ(model.block_size(held), 60_MiB);
  EXPECT_EQ(model.block_size(model.take(40_MiB)), 40_MiB);
}

TEST(CachingRelease, AFractionLimitsSegmentsNotBlocks) {
  CachingSettings settings;
  settings.memory_fraction = 0.5;
  Model model(settings, 100_MiB);
  model.take(20_MiB);
  model.take(20_MiB);
  const Shortage shortage = model.fail(2_MiB);
  EXPECT_EQ(shortage.reason, Shortage::Reason::OverLimit) << "2 MiB would take a segment of 20 MiB";
  EXPECT_EQ(model.block_size(model.take(10_MiB)), 10_MiB);
  EXPECT_EQ(model.reserved(), 50_MiB) << "up to the limit itself";
}

TEST(CachingRelease, ARequestOf2To60IsRefusedUnseen) {
  Model model({}, 100_MiB);
  model.free(model.take(20_MiB));
  EXPECT_EQ(model.fail(Bytes{1ull << 60}).reason, Shortage::Reason::TooLarge);
  EXPECT_EQ(model.reserved(), 20_MiB);
  EXPECT_EQ(model.ears.count(Action::OutOfMemory), 0u);
  EXPECT_EQ(model.fail(Bytes{UINT64_MAX}).reason, Shortage::Reason::TooLarge);
  EXPECT_EQ(model.fail(Bytes{(1ull << 60) - 1}).reason, Shortage::Reason::DeviceFull);
}

TEST(CachingRelease, MaxSplitKeepsLargeBlocksForLargeRequests) {
  Model model(with_max_split(64_MiB));
  const Allocation large = model.take(64_MiB);
  model.free(large);
  EXPECT_NE(model.take(60_MiB).address, large.address) << "a request below the border takes no block from it on";
  EXPECT_EQ(model.take(64_MiB).address, large.address);
}

TEST(CachingRelease, MaxSplitLeavesBlocksBelowItAsTheyWere) {
  Model model(with_max_split(64_MiB));
  const Allocation below = model.take(62_MiB);
  model.free(below);
  const Allocation half = model.take(30_MiB);
  EXPECT_EQ(half.address, below.address);
  EXPECT_EQ(model.block_size(half), 30_MiB);
}

TEST(CachingRelease, ABlockFromMaxSplitOnIsNeverSplit) {
  Model model(with_max_split(64_MiB));
  model.free(model.take(80_MiB));
  EXPECT_EQ(model.block_size(model.take(64_MiB)), 80_MiB);
}

TEST(CachingRelease, ALargeRequestTakesNoBlockTooLargeByTheRounding) {
  Model model(with_max_split(64_MiB));  // the rounding defaults to the size of a large segment, 20 MiB
  const Allocation block = model.take(90_MiB);
  model.free(block);
  EXPECT_NE(model.take(70_MiB).address, block.address);
  EXPECT_EQ(model.take(70_MiB + 512_B).address, block.address);
  CachingSettings settings = with_max_split(64_MiB);
  settings.max_non_split_rounding = 30_MiB;
  Model wider(settings);
  const Allocation other = wider.take(90_MiB);
  wider.free(other);
  EXPECT_EQ(wider.take(70_MiB).address, other.address);
}

TEST(CachingRelease, WithMaxSplitOneLargeEnoughBlockIsGivenBackFirst) {
  Model model(with_max_split(64_MiB), 300_MiB);
  const Allocation small = model.take(40_MiB);
  const Allocation middle = model.take(100_MiB);
  const Allocation large = model.take(150_MiB);
  for (const Allocation& block : {small, middle, large}) model.free(block);
  model.take(70_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), std::vector{100_MiB}) << "the smallest that would have held it";
  EXPECT_EQ(model.allocator.stats().retries, 0u);
}

TEST(CachingRelease, WithMaxSplitSeveralAreGivenBackLargestFirst) {
  Model model(with_max_split(64_MiB), 300_MiB);
  const Allocation small = model.take(40_MiB);
  const Allocation a = model.take(64_MiB);
  const Allocation b = model.take(80_MiB);
  const Allocation c = model.take(90_MiB);
  for (const Allocation& block : {small, a, b, c}) model.free(block);
  model.take(160_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), (std::vector{90_MiB, 80_MiB})) << "until they make up the request";
  EXPECT_EQ(model.allocator.stats().retries, 0u);
}

TEST(CachingRelease, ABlockOfExactlyMaxSplitIsGivenBackToo) {
  Model model(with_max_split(64_MiB), 300_MiB);
  const Allocation a = model.take(64_MiB);
  const Allocation b = model.take(80_MiB);
  const Allocation c = model.take(90_MiB);
  for (const Allocation& block : {a, b, c}) model.free(block);
  model.take(200_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), (std::vector{90_MiB, 80_MiB, 64_MiB}));
  EXPECT_EQ(model.allocator.stats().retries, 0u);
}

TEST(CachingRelease, WithMaxSplitTheRestGoesWhenThatWasNotEnough) {
  Model model(with_max_split(64_MiB), 300_MiB);
  const Allocation small = model.take(40_MiB);
  const Allocation large = model.take(100_MiB);
  model.free(small);
  model.free(large);
  model.take(290_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), (std::vector{100_MiB, 40_MiB}));
  EXPECT_EQ(model.allocator.stats().retries, 1u);
}

CachingSettings collecting() {
  CachingSettings settings;
  settings.memory_fraction = 0.5;
  settings.garbage_collection_threshold = 0.5;
  return settings;
}

TEST(CachingRelease, GarbageOfTheOldestIsCollectedAboveTheThreshold) {
  Model model(collecting(), 400_MiB);  // limit 200, threshold 100
  const Allocation old = model.take(40_MiB);
  const Allocation young = model.take(64_MiB);
  model.free(old);
  model.free(young);
  for (int i = 0; i < 4; ++i) model.free(model.take(60_MiB));  // each request passes `old` over, which ages it
  model.take(70_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), std::vector{40_MiB});
  EXPECT_EQ(model.allocator.stats().retries, 0u);
}

TEST(CachingRelease, GarbageOfTheAverageAgeIsCollectedToo) {
  Model model(collecting(), 400_MiB);
  const Allocation only = model.take(40_MiB);
  model.take(70_MiB);
  model.free(only);
  model.take(64_MiB);
  EXPECT_EQ(model.ears.sizes(Action::SegmentFreed), std::vector{40_MiB});
  EXPECT_EQ(model.allocator.stats().retries, 0u);
}

TEST(CachingRelease, NothingIsCollectedUpToTheThreshold) {
  Model model(collecting(), 400_MiB);
  model.free(model.take(40_MiB));
  const Allocation rest = model.take(60_MiB);
  model.free(rest);
  model.take(64_MiB);
  EXPECT_EQ(model.ears.count(Action::SegmentFreed), 0u);
}

TEST(CachingRelease, NothingIsCollectedWithoutAFraction) {
  CachingSettings settings;
  settings.garbage_collection_threshold = 0.1;
  Model model(settings, 200_MiB);
  model.free(model.take(40_MiB));
  model.take(60_MiB);
  EXPECT_EQ(model.ears.count(Action::SegmentFreed), 0u);
}

}  // namespace
}  // namespace ullage::sim
