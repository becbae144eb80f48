// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ullage::store {
namespace {

constexpr AddressRange kAll{Address{1ull << 40}, 64_MiB};

TEST(AddressSpace, TakesTheSmallestGapThatFits) {
  AddressSpace space(kAll);
  const Address a = *space.take(8_KiB, 4_KiB);
  const Address b = *space.take(4_KiB, 4_KiB);
  const Address c = *space.take(4_KiB, 4_KiB);
  const Address d = *space.take(4_KiB, 4_KiB);
  (void)b, (void)d;
  space.give({a, 8_KiB});
  space.give({c, 4_KiB});
  EXPECT_EQ(*space.take(4_KiB, 4_KiB), c);
  EXPECT_EQ(*space.take(4_KiB, 4_KiB), a);
}

TEST(AddressSpace, JoinsNeighbours) {
  AddressSpace space(kAll);
  const Address a = *space.take(32_MiB, 4_KiB);
  const Address b = *space.take(32_MiB, 4_KiB);
  EXPECT_FALSE(space.take(4_KiB, 4_KiB));
  space.give({b, 32_MiB});
  space.give({a, 32_MiB});
  EXPECT_EQ(space.vacant(), 64_MiB);
  EXPECT_EQ(*space.take(64_MiB, 4_KiB), kAll.begin);
}

TEST(AddressSpace, KeepsAlignmentAndTheGapBeforeIt) {
  AddressSpace space(kAll);
  ASSERT_TRUE(space.take(4_KiB, 4_KiB));
  const Address huge = *space.take(2_MiB, 2_MiB);
  EXPECT_EQ(huge.value % (2_MiB).count, 0u);
  EXPECT_EQ(space.vacant(), 64_MiB - 2_MiB - 4_KiB);
  EXPECT_LT(*space.take(4_KiB, 4_KiB), huge) << "the gap left by the alignment is used";
}

TEST(AddressSpace, GivingTwiceBreaksTheContract) {
  AddressSpace space(kAll);
  const Address a = *space.take(8_KiB, 4_KiB);
  space.give({a, 8_KiB});
  EXPECT_THROW(space.give({a, 8_KiB}), ContractError);
  EXPECT_THROW(space.give({a + 4_KiB, 4_KiB}), ContractError);
}

TEST(AddressSpace, NeverHandsOutWhatIsTaken) {
  AddressSpace space(kAll);
  std::map<Address, Bytes> taken;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const Bytes size = 4_KiB * (1 + random() % 300);
      const Bytes alignment = random() % 4 == 0 ? 256_KiB : 4_KiB;
      const auto at = space.take(size, alignment);
      if (!at) continue;
      ASSERT_EQ(at->value % alignment.count, 0u);
      const auto next = taken.lower_bound(*at);
      ASSERT_TRUE(next == taken.end() || *at + size <= next->first);
      ASSERT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= *at);
      taken.emplace(*at, size);
    } else {
      auto it = taken.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % taken.size()));
      space.give({it->first, it->second});
      taken.erase(it);
    }
    Bytes sum = space.vacant();
    for (const auto& [at, size] : taken) sum += size;
    ASSERT_EQ(sum, kAll.size);
  }
}

TEST(AddressSpace, GivesTheEndOfTheSmallestGapThatIsEnoughOrElseTheLargest) {
  AddressSpace space({Address{(1_MiB).count}, {}});
  EXPECT_FALSE(space.take_up_to(1_MiB));
  space.give({Address{(16_MiB).count}, 2_MiB});
  space.give({Address{(32_MiB).count}, 8_MiB});
  const AddressRange end = *space.take_up_to(4_MiB);
  EXPECT_EQ(end.begin, Address{(36_MiB).count});
  EXPECT_EQ(end.size, 4_MiB);
  EXPECT_EQ(space.vacant(), 6_MiB);
  const AddressRange largest = *space.take_up_to(16_MiB);
  EXPECT_EQ(largest.begin, Address{(32_MiB).count});
  EXPECT_EQ(largest.size, 4_MiB);
  EXPECT_EQ(space.gaps(), 1u);
}

}  // namespace
}  // namespace ullage::store
