// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/pool_model.h"

#include <gtest/gtest.h>

namespace ullage::sim {
namespace {

TEST(PoolModel, CountsWholePagesAndSlabs) {
  PoolModel pool;
  pool.allocate(100_B);
  EXPECT_EQ(pool.resident_now(), 256_KiB);
  pool.allocate(65_KiB);
  EXPECT_EQ(pool.resident_now(), 256_KiB + 68_KiB);
}

TEST(PoolModel, DoesNotCountWhatIsBehindNoStorage) {
  PoolModel pool;
  const Address large = pool.allocate(3_MiB);
  pool.free(large);
  EXPECT_EQ(pool.resident_now(), 0_B);
  EXPECT_EQ(pool.resident_peak(), 3_MiB);
  pool.allocate(1_MiB);
  EXPECT_EQ(pool.resident_now(), 1_MiB);
  EXPECT_EQ(pool.resident_peak(), 3_MiB);
}

TEST(PoolModel, GivesPagesUpAndTakesThem) {
  PoolModel pool;
  const Address one = pool.allocate(5_MiB);
  pool.give_pages_up(one);
  EXPECT_EQ(pool.resident_now(), 0_B);
  const Address other = pool.allocate(2_MiB);
  pool.take_pages(one);
  EXPECT_EQ(pool.resident_now(), 7_MiB);
  EXPECT_EQ(pool.resident_peak(), 7_MiB);
  pool.give_pages_up(other);
  pool.free(other);
  pool.free(one);
  EXPECT_EQ(pool.resident_now(), 0_B);
}

TEST(PoolModel, HandsPagesOverWithoutTakingMore) {
  PoolModel pool;
  const Address kept = pool.allocate(5_MiB);
  pool.give_pages_up(kept);
  const Address recomputed = pool.allocate(5_MiB);
  pool.hand_over(recomputed, kept);
  pool.free(recomputed);
  EXPECT_EQ(pool.resident_now(), 5_MiB);
  EXPECT_EQ(pool.resident_peak(), 5_MiB);
  pool.free(kept);
  EXPECT_EQ(pool.resident_now(), 0_B);
}

TEST(PoolModel, RefusesWhatHasNoAddresses) {
  PoolModel pool;
  EXPECT_THROW(pool.allocate(Bytes{1ull << 51}), ContractError);
}

}  // namespace
}  // namespace ullage::sim
