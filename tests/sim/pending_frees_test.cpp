// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pending_frees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <vector>

namespace ullage::sim {
namespace {

std::vector<BlockIndex> poll(PendingFrees& pending) {
  std::vector<BlockIndex> done;
  pending.poll(done);
  return done;
}
std::vector<BlockIndex> wait(PendingFrees& pending) {
  std::vector<BlockIndex> done;
  pending.wait(done);
  return done;
}

TEST(PendingFrees, AreDoneAtTheirLastQueryAndInOrder) {
  PendingFrees pending(2);
  pending.add(3, 10);
  pending.add(3, 11);
  EXPECT_EQ(poll(pending), std::vector<BlockIndex>{});
  EXPECT_EQ(poll(pending), std::vector<BlockIndex>{10}) << "the next in the queue was asked for the first time";
  EXPECT_EQ(poll(pending), std::vector<BlockIndex>{11});
  EXPECT_TRUE(pending.empty());
}

TEST(PendingFrees, WithoutQueriesAllAreDoneAtOnce) {
  PendingFrees pending(0);
  pending.add(3, 10);
  pending.add(3, 11);
  EXPECT_EQ(poll(pending), (std::vector<BlockIndex>{10, 11}));
}

TEST(PendingFrees, WaitingEndsAll) {
  PendingFrees pending(1000);
  for (BlockIndex i = 0; i < 50; ++i) pending.add(i % 7, i);
  std::vector<BlockIndex> done = wait(pending);
  std::sort(done.begin(), done.end());
  ASSERT_EQ(done.size(), 50u);
  for (BlockIndex i = 0; i < 50; ++i) EXPECT_EQ(done[i], i);
  EXPECT_TRUE(pending.empty());
}

// torch's default stream and the first three of its pool have the ids 0, 3, 35 and 67. tests/oracle compares the order
// with that of torch's own hash table.
TEST(PendingFrees, StreamsComeInTheOrderOfTorchsTableNotOfTheirIds) {
  PendingFrees pending(0);
  for (const std::uint64_t stream : {0u, 3u, 35u, 67u}) pending.add(stream, static_cast<BlockIndex>(stream));
  EXPECT_EQ(wait(pending), (std::vector<BlockIndex>{0, 67, 35, 3}));
}

// Returns the order in which frees are done if frees of these streams are added in this order.
std::vector<BlockIndex> order(std::initializer_list<std::uint64_t> streams) {
  PendingFrees pending(0);
  for (const std::uint64_t stream : streams) pending.add(stream, static_cast<BlockIndex>(stream));
  return wait(pending);
}

// 195 and 35 hash to the same slot of four, but to the 4th and 5th of eight. The third stream makes the table grow.
TEST(PendingFrees, TheTableGrowsWhenMoreThanHalfOfItIsUsed) {
  EXPECT_EQ(order({35, 195}), (std::vector<BlockIndex>{35, 195}));
  EXPECT_EQ(order({35, 195, 0}), (std::vector<BlockIndex>{0, 195, 35}));
}

// All keys hash to one slot of 16, and no key may be four slots away from its own. So the fifth makes the table grow to
// 32 slots, where it comes before the others.
TEST(PendingFrees, TheTableGrowsWhenAKeyWouldStandTooFarOff) {
  EXPECT_EQ(order({15, 49, 70, 104}), (std::vector<BlockIndex>{15, 49, 70, 104}));
  EXPECT_EQ(order({15, 49, 70, 104, 2}), (std::vector<BlockIndex>{2, 15, 49, 70, 104}));
}

// 35 and 195 hash to the same slot of four. 195 moves up when 35 is done.
TEST(PendingFrees, AStreamThatIsDoneLeavesItsSlotToTheNext) {
  PendingFrees pending(2);
  pending.add(35, 10);
  EXPECT_EQ(poll(pending), std::vector<BlockIndex>{});
  pending.add(195, 11);
  EXPECT_EQ(poll(pending), std::vector<BlockIndex>{10});
  pending.add(35, 12);
  EXPECT_EQ(wait(pending), (std::vector<BlockIndex>{11, 12}));
}

TEST(PendingFrees, LoseNothingOverManyStreams) {
  std::mt19937_64 random(1);
  PendingFrees pending(3);
  std::size_t added = 0;
  std::size_t done = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0) {
      pending.add(random() % 300, static_cast<BlockIndex>(added++));
    } else if (random() % 50 == 0) {
      done += wait(pending).size();
      ASSERT_TRUE(pending.empty());
    } else {
      done += poll(pending).size();
    }
  }
  EXPECT_EQ(added, done + wait(pending).size());
}

}  // namespace
}  // namespace ullage::sim
