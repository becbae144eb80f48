// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/free_blocks.h"

#include "ullage/base/check.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace ullage::sim {
namespace {

using Entry = FreeBlocks::Entry;

TEST(FreeBlocks, FindsTheFirstOfAtLeastASize) {
  FreeBlocks blocks;
  blocks.insert({4_MiB, 0, Address{100}, 1});
  blocks.insert({2_MiB, 0, Address{200}, 2});
  blocks.insert({2_MiB, 0, Address{150}, 3});
  EXPECT_EQ(blocks.at(blocks.first_from(512_B)).block, 3u);
  EXPECT_EQ(blocks.at(blocks.first_from(2_MiB)).block, 3u);
  EXPECT_EQ(blocks.at(blocks.first_from(2_MiB + 512_B)).block, 1u);
  EXPECT_FALSE(blocks.first_from(4_MiB + 512_B));
}

TEST(FreeBlocks, AmongEqualSizesBirthComesBeforeAddress) {
  FreeBlocks blocks;
  blocks.insert({2_MiB, 7, Address{100}, 1});
  blocks.insert({2_MiB, 5, Address{900}, 2});
  EXPECT_EQ(blocks.at(blocks.first_from(2_MiB)).block, 2u);
}

TEST(FreeBlocks, RemovingWhatIsNotThereIsABrokenContract) {
  FreeBlocks blocks;
  blocks.insert({2_MiB, 0, Address{100}, 1});
  EXPECT_THROW(blocks.erase({2_MiB, 0, Address{101}, 1}), ContractError);
  EXPECT_THROW(blocks.erase({4_MiB, 0, Address{100}, 1}), ContractError);
  blocks.erase({2_MiB, 0, Address{100}, 1});
  EXPECT_TRUE(blocks.empty());
  EXPECT_FALSE(blocks.first_from(1_B));
}

TEST(FreeBlocks, HoldsSizesUpToTheLargest) {
  FreeBlocks blocks;
  blocks.insert({Bytes{UINT64_MAX}, 0, Address{1}, 1});
  blocks.insert({Bytes{1ull << 60}, 0, Address{2}, 2});
  blocks.insert({512_B, 0, Address{3}, 3});
  EXPECT_EQ(blocks.at(blocks.first_from(Bytes{(1ull << 60) + 1})).block, 1u);
  EXPECT_EQ(blocks.at(blocks.first_from(513_B)).block, 2u);
}

// Compares with a sorted set. Sizes are of all magnitudes, and many are equal.
TEST(FreeBlocks, OrdersAsASortedSetDoes) {
  std::mt19937_64 random(1);
  FreeBlocks blocks;
  std::set<Entry> set;
  for (int i = 0; i < 20000; ++i) {
    const Bytes size = 512_B * (1 + (random() % 64 << random() % 40));
    const Entry entry{size, random() % 3, Address{random() % 64 * 512}, static_cast<BlockIndex>(i)};
    if (random() % 3 != 0) {
      if (set.insert(entry).second) blocks.insert(entry);
    } else if (const auto found = set.lower_bound(entry); found != set.end()) {
      blocks.erase(*found);
      set.erase(found);
    }
    const auto expected = set.lower_bound(Entry{size, 0, Address{}, 0});
    const FreeBlocks::Cursor cursor = blocks.first_from(size);
    ASSERT_EQ(static_cast<bool>(cursor), expected != set.end());
    if (cursor) {
      ASSERT_EQ(blocks.at(cursor), *expected);
    }
    const FreeBlocks::Cursor below = blocks.before(cursor);
    ASSERT_EQ(static_cast<bool>(below), expected != set.begin());
    if (below) {
      ASSERT_EQ(blocks.at(below), *std::prev(expected));
    }
  }
  const std::vector<Entry> all = blocks.all();
  EXPECT_TRUE(std::equal(all.begin(), all.end(), set.begin(), set.end()));
  std::size_t walked = 0;
  for (auto at = blocks.first_from(0_B); at; at = blocks.after(at)) EXPECT_EQ(blocks.at(at), all[walked++]);
  EXPECT_EQ(walked, all.size());
}

}  // namespace
}  // namespace ullage::sim
