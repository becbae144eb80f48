// SPDX-License-Identifier: Apache-2.0
// The rules by which requests are placed, each tested at its borders.
#include "model.h"

namespace ullage::sim {
namespace {

TEST(Caching, TakesSmallRequestsFromSegmentsOf2MiB) {
  Model model;
  const Allocation first = model.take(1_B);
  const Allocation second = model.take(513_B);
  EXPECT_EQ(model.ears.sizes(Action::SegmentAllocated), std::vector{2_MiB});
  EXPECT_EQ(second.address, first.address + 512_B);
  EXPECT_EQ(model.block_size(second), 1_KiB);
  EXPECT_EQ(model.allocator.stats().allocated, 1536_B);
}

TEST(Caching, ASmallBlockOf1MiBAndALargerOneAreOfDifferentPools) {
  Model model;
  model.take(1_MiB);
  model.take(1_MiB);
  model.take(1_MiB + 1_B);
  EXPECT_EQ(model.ears.sizes(Action::SegmentAllocated), (std::vector{2_MiB, 20_MiB}));
}

TEST(Caching, TakesASegmentOfItsOwnFrom10MiBOn) {
  Model model;
  model.take(10_MiB - 512_B);
  model.take(10_MiB);
  model.take(10_MiB + 1_B);
  EXPECT_EQ(model.ears.sizes(Action::SegmentAllocated), (std::vector{20_MiB, 12_MiB}))
      << "the second fits behind the first";
  Model other;
  other.take(10_MiB);
  EXPECT_EQ(other.ears.sizes(Action::SegmentAllocated), std::vector{10_MiB});
}

TEST(Caching, SplitsOffA512ByteRestInTheSmallPool) {
  Model model;
  const Allocation block = model.take(1_MiB);
  const Allocation rest = model.take(1_MiB - 512_B);
  const Allocation last = model.take(512_B);
  EXPECT_EQ(model.ears.count(Action::SegmentAllocated), 1u);
  EXPECT_EQ(rest.address, block.address + 1_MiB);
  EXPECT_EQ(last.address, block.address + (2_MiB - 512_B));
}

TEST(Caching, KeepsARestOf1MiBWithTheBlockInTheLargePool) {
  Model kept;
  EXPECT_EQ(kept.block_size(kept.take(11_MiB)), 12_MiB);
  Model split;
  const Allocation block = split.take(19_MiB);
  EXPECT_EQ(split.block_size(block), 20_MiB);
  split.free(block);
  const Allocation less = split.take(19_MiB - 512_B);
  EXPECT_EQ(split.block_size(less), 19_MiB - 512_B);
}

TEST(Caching, TakesTheSmallestBlockThatFits) {
  Model model;
  const Allocation large = model.take(40_MiB);
  const Allocation middle = model.take(30_MiB);
  const Allocation small = model.take(24_MiB);
  model.free(large);
  model.free(middle);
  model.free(small);
  EXPECT_EQ(model.take(28_MiB).address, middle.address);
  EXPECT_EQ(model.take(24_MiB).address, small.address) << "an exact fit is a fit";
  EXPECT_EQ(model.take(24_MiB + 512_B).address, large.address);
  EXPECT_EQ(model.ears.count(Action::SegmentAllocated), 3u);
}

TEST(Caching, AFreedBlockMergesWithBothNeighbours) {
  Model model;
  const Allocation a = model.take(4_MiB);
  const Allocation b = model.take(4_MiB);
  const Allocation c = model.take(4_MiB);
  model.free(a);
  model.free(c);
  model.free(b);
  ASSERT_EQ(model.allocator.blocks().size(), 1u);
  EXPECT_EQ(model.allocator.blocks()[0].size, 20_MiB);
  EXPECT_EQ(model.take(20_MiB).address, a.address);
}

TEST(Caching, KeepsSegmentsWhenAllIsFree) {
  Model model;
  model.free(model.take(100_MiB));
  EXPECT_EQ(model.reserved(), 100_MiB);
  EXPECT_EQ(model.allocator.stats().allocated, 0_B);
  EXPECT_EQ(model.allocator.stats().allocated_peak, 100_MiB);
}

TEST(Caching, EachStreamHasItsOwnBlocks) {
  Model model;
  const Allocation block = model.take(20_MiB, 0);
  model.free(block);
  EXPECT_NE(model.take(20_MiB, 7).address, block.address);
  EXPECT_EQ(model.take(20_MiB, 0).address, block.address);
  EXPECT_EQ(model.ears.count(Action::SegmentAllocated), 2u);
}

// Makes two free blocks of one size. `older` is in the segment that was allocated first, `lower` in the later segment,
// at a lower address.
struct TwoBlocks {
  explicit TwoBlocks(Ties ties) : model(with(ties), 64_GiB, Addresses::LowestFit) {
    const Allocation gap = model.take(40_MiB);
    older = model.take(40_MiB);
    model.free(gap);
    model.allocator.empty_cache();  // the addresses below are free again
    lower = model.take(40_MiB);
    EXPECT_LT(lower.address, older.address);
    model.free(lower);
    model.free(older);
  }
  static CachingSettings with(Ties ties) {
    CachingSettings settings;
    settings.ties = ties;
    return settings;
  }
  Model model;
  Allocation older, lower;
};

TEST(Caching, OfEqualBlocksTakesThatOfTheOldestSegment) {
  TwoBlocks two(Ties::OldestSegment);
  EXPECT_EQ(two.model.take(40_MiB).address, two.older.address);
}

TEST(Caching, OfEqualBlocksTakesTheOldestBlockAsTorch212) {
  TwoBlocks two(Ties::OldestBlock);
  EXPECT_EQ(two.model.take(40_MiB).address, two.older.address);
}

TEST(Caching, OfEqualBlocksTakesTheLowestAsTorch211) {
  TwoBlocks two(Ties::LowestAddress);
  EXPECT_EQ(two.model.take(40_MiB).address, two.lower.address);
}

// A block that is split off is younger than its segment. One segment has two equal free blocks. The front one was split
// off; the rest kept the number of the segment's first block. So by OldestBlock the rest is taken.
TEST(Caching, ABlockCutOffIsYoungerThanTheRest) {
  const auto second_of_two = [](Ties ties) {
    Model model(TwoBlocks::with(ties));
    const Allocation front = model.take(4_MiB);
    const Allocation wall = model.take(12_MiB);
    model.free(front);  // |4 free|12 live|4 free|
    const bool front_first = model.take(4_MiB).address == front.address;
    model.free(wall);
    return front_first;
  };
  EXPECT_TRUE(second_of_two(Ties::OldestSegment));
  EXPECT_TRUE(second_of_two(Ties::LowestAddress));
  EXPECT_FALSE(second_of_two(Ties::OldestBlock));
}

TEST(Caching, ABlockUsedByAnotherStreamIsFreeWhenThatOneIsDone) {
  Model model({}, 64_GiB, Addresses::Growing, 3);
  const Allocation block = model.take(20_MiB);
  model.allocator.record_stream(block.block, StreamId{5});
  model.free(block);
  EXPECT_EQ(model.allocator.stats().allocated, 0_B);
  EXPECT_EQ(model.ears.count(Action::FreeRequested), 1u);
  EXPECT_EQ(model.ears.count(Action::FreeCompleted), 0u);
  EXPECT_NE(model.take(20_MiB).address, block.address);
  EXPECT_NE(model.take(20_MiB).address, block.address);
  EXPECT_EQ(model.take(20_MiB).address, block.address) << "the third time it is asked for, the event is done";
  EXPECT_EQ(model.ears.count(Action::FreeCompleted), 1u);
}

TEST(Caching, ABlockUsedByItsOwnStreamIsFreeAtOnce) {
  Model model({}, 64_GiB, Addresses::Growing, 3);
  const Allocation block = model.take(20_MiB);
  model.allocator.record_stream(block.block, StreamId{0});
  model.free(block);
  EXPECT_EQ(model.ears.count(Action::FreeCompleted), 1u);
}

TEST(Caching, APendingBlockIsNoNeighbourToMergeWith) {
  Model model({}, 64_GiB, Addresses::Growing, 100);
  const Allocation front = model.take(4_MiB);
  const Allocation back = model.take(4_MiB);
  model.allocator.record_stream(front.block, StreamId{5});
  model.free(front);
  model.free(back);
  EXPECT_EQ(model.allocator.blocks().size(), 2u);
  model.allocator.empty_cache();  // waits for the events of pending frees
  EXPECT_EQ(model.allocator.blocks().size(), 0u);
  EXPECT_EQ(model.reserved(), 0_B);
}

TEST(Caching, AFreeToldInTwoPartsHoldsTheBlockBetween) {
  Model model;
  const Allocation block = model.take(20_MiB);
  model.allocator.request_free(block.block);
  const Allocation other = model.take(20_MiB);
  EXPECT_NE(other.address, block.address);
  model.allocator.complete_free(block.block);
  EXPECT_EQ(model.take(20_MiB).address, block.address);
}

TEST(Caching, ABlockFreedTwiceIsABrokenContract) {
  Model model;
  const Allocation block = model.take(20_MiB);
  model.free(block);
  EXPECT_THROW(model.allocator.free(block.block), ContractError);
  EXPECT_THROW(model.allocator.complete_free(block.block), ContractError);
  EXPECT_THROW(model.allocator.record_stream(block.block, StreamId{1}), ContractError);
  EXPECT_THROW(model.allocator.free(BlockId{12345}), ContractError);
  EXPECT_THROW((void)model.allocator.allocate(0_B, StreamId{0}), ContractError);
}

TEST(Caching, TellsEventsWithTheBytesThatWereAskedFor) {
  Model model;
  const Allocation block = model.take(700_B, 3);
  model.free(block);
  const StreamId stream{3};
  const std::vector<AllocatorEvent> expected{
      {Action::SegmentAllocated, block.address, 2_MiB, stream, {}},
      {Action::Allocated, block.address, 700_B, stream, {}},
      {Action::FreeRequested, block.address, 700_B, stream, {}},
      {Action::FreeCompleted, block.address, 700_B, stream, {}},
  };
  EXPECT_EQ(model.ears.events, expected);
}

TEST(Caching, ASeededLayoutIsWhatWasSeeded) {
  using State = CachingAllocator::SeedPiece::State;
  Model model;
  const Address base{1ull << 40};
  const std::vector<BlockId> live =
      model.allocator.seed({base,
                            StreamId{0},
                            false,
                            false,
                            {{4_MiB, {}, State::Free}, {6_MiB, 6_MiB, State::Live}, {10_MiB, {}, State::Free}}});
  ASSERT_EQ(live.size(), 1u);
  expect_sound(model.allocator);
  EXPECT_EQ(model.reserved(), 20_MiB);
  EXPECT_EQ(model.take(5_MiB).address, base + 10_MiB);
  EXPECT_EQ(model.take(4_MiB).address, base);
  model.allocator.free(live[0]);
  expect_sound(model.allocator);
  EXPECT_EQ(model.take(6_MiB).address, base + 4_MiB);
}

}  // namespace
}  // namespace ullage::sim
