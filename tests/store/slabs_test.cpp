// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/slabs.h"

#include <gtest/gtest.h>

#include <set>

namespace ullage::store {
namespace {

Range slab_at(std::uint64_t index) {
  return {Address{(1ull << 40) + index * Slabs::kSlab.count}, Slabs::kSlab, {{Slabs::kSlab, PageKind::Small}}};
}

TEST(Slabs, EverySizeFitsItsBlockWithAtMostAQuarterMore) {
  for (std::uint64_t size = 1; size < Slabs::kBlockLimit.count; ++size) {
    const Bytes block = Slabs::block_size(Bytes{size});
    ASSERT_GE(block.count, size);
    ASSERT_EQ(block.count % 64, 0u);
    if (size > 256) {
      ASSERT_LE(block.count * 4, size * 5 + 4 * 64) << size;
    }
  }
  EXPECT_EQ(Slabs::block_size(65_B), 128_B);
  EXPECT_EQ(Slabs::block_size(577_B), 640_B);
  EXPECT_EQ(Slabs::block_size(Bytes{65535}), 64_KiB);
}

TEST(Slabs, FillsASlabWithBlocksThatDoNotOverlap) {
  Slabs slabs;
  EXPECT_FALSE(slabs.take(100_B)) << "there is no slab yet";
  slabs.add_slab(slab_at(0), 100_B);
  std::set<Address> blocks;
  while (const auto block = slabs.take(100_B)) {
    EXPECT_TRUE(slabs.owns(*block));
    EXPECT_TRUE(blocks.insert(*block).second);
  }
  EXPECT_EQ(blocks.size(), Slabs::kSlab.count / 128);
  std::uint64_t last = 0;
  for (const Address block : blocks) {
    EXPECT_TRUE(last == 0 || block.value - last == 128);
    last = block.value;
  }
}

TEST(Slabs, ReturnsTheSlabWithItsLastBlock) {
  Slabs slabs;
  slabs.add_slab(slab_at(3), 4096_B);
  const Address a = *slabs.take(4096_B);
  const Address b = *slabs.take(4000_B);
  Slabs::Freed freed = slabs.give(a);
  EXPECT_EQ(freed.size, 4096_B);
  EXPECT_FALSE(freed.emptied);
  freed = slabs.give(b);
  EXPECT_EQ(freed.size, 4000_B) << "what was asked for, not the block";
  ASSERT_TRUE(freed.emptied);
  EXPECT_EQ(freed.emptied->at, slab_at(3).at);
  EXPECT_FALSE(slabs.owns(a));
  EXPECT_FALSE(slabs.take(4096_B));
}

TEST(Slabs, AFullSlabOpensAgainWhenABlockIsFreed) {
  Slabs slabs;
  slabs.add_slab(slab_at(0), Bytes{60000});
  std::vector<Address> blocks;
  while (const auto block = slabs.take(Bytes{60000})) blocks.push_back(*block);
  ASSERT_EQ(blocks.size(), 4u);
  slabs.give(blocks[2]);
  EXPECT_EQ(*slabs.take(Bytes{60000}), blocks[2]);
}

TEST(Slabs, FreeingTwiceOrInsideABlockBreaksTheContract) {
  Slabs slabs;
  slabs.add_slab(slab_at(0), 128_B);
  const Address a = *slabs.take(128_B);
  const Address b = *slabs.take(128_B);
  EXPECT_THROW(slabs.give(a + 64_B), ContractError);
  slabs.give(a);
  EXPECT_THROW(slabs.give(a), ContractError);
  EXPECT_THROW(slabs.give(b + 128_B), ContractError) << "never allocated";
}

}  // namespace
}  // namespace ullage::store
