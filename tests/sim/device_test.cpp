// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/device.h"

#include "ullage/sim/following_device.h"

#include <gtest/gtest.h>

namespace ullage::sim {
namespace {

TEST(SimulatedDevice, JoinsAddressesThatAreGivenBackWithThoseAboveAndBelow) {
  for (const bool upper_first : {false, true}) {
    SimulatedDevice device(64_GiB, Addresses::LowestFit);
    const Address low = *device.allocate(20_MiB);
    const Address high = *device.allocate(20_MiB);
    ASSERT_EQ(high, low + 20_MiB);
    ASSERT_TRUE(device.allocate(2_MiB));
    device.free(upper_first ? high : low, 20_MiB);
    device.free(upper_first ? low : high, 20_MiB);
    EXPECT_EQ(device.allocate(40_MiB), low) << (upper_first ? "the upper one first" : "the lower one first");
  }
}

// Sizes of damaged recordings: the addresses that are made up for them must not run out of 64 bits.
TEST(FollowingDevice, RefusesMoreThan1TiBInOneStep) {
  FollowingDevice device(1_GiB);
  constexpr Bytes kMost{1ull << 40};
  EXPECT_FALSE(device.allocate(kMost + 512_B));
  EXPECT_FALSE(device.commit(Address{1ull << 21}, kMost + 512_B));
  EXPECT_FALSE(device.surprise()) << "it was not granted";
  EXPECT_TRUE(device.allocate(kMost));
  EXPECT_TRUE(device.commit(Address{1ull << 21}, kMost));
}

}  // namespace
}  // namespace ullage::sim
