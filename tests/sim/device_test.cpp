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

// Damaged recordings may state huge sizes. The addresses that are made up for them must not exceed 64 bits.
TEST(FollowingDevice, RefusesMoreThan1TiBInOneStep) {
  FollowingDevice device(1_GiB);
  constexpr Bytes kMost{1ull << 40};
  EXPECT_FALSE(device.allocate(kMost + 512_B));
  EXPECT_FALSE(device.commit(Address{1ull << 21}, kMost + 512_B));
  EXPECT_FALSE(device.difference()) << "it was not granted";
  EXPECT_TRUE(device.allocate(kMost));
  EXPECT_TRUE(device.commit(Address{1ull << 21}, kMost));
}

TEST(FollowingDevice, TellsASegmentOfTheSameSizeAtAnotherAddress) {
  FollowingDevice device(1_GiB);
  device.expect({{FollowingDevice::Action::SegmentFreed, Address{20ull << 20}, 20_MiB, 7}}, 8, false);
  device.free(Address{60ull << 20}, 20_MiB);
  ASSERT_TRUE(device.difference());
  EXPECT_EQ(device.difference()->event, 7u);
  EXPECT_EQ(device.difference()->what,
            "segment_free of 20.00 MiB, the model has segment_free of 20.00 MiB at another address");
}

TEST(FollowingDevice, RefusesARequestThatFailedButNoneAfterADifference) {
  FollowingDevice device(1_GiB);
  device.expect({}, 8, true);
  EXPECT_FALSE(device.allocate(20_MiB));
  device.diverge({8, {}, {}, "something else", {}});
  EXPECT_TRUE(device.allocate(20_MiB));
}

}  // namespace
}  // namespace ullage::sim
