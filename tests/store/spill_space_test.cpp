// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_space.h"

#include "ullage/store/checksum.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::store {
namespace {

using Forks = std::vector<std::uint64_t>;

TEST(SpillSpace, GapsCountForTheFootprintAndEmptyOffsetsDoNot) {
  SpillSpace space(4_MiB, 1_GiB);
  const SpillSlot a = *space.grow(1_MiB), b = *space.grow(3_MiB);
  EXPECT_THROW((void)space.grow(4_KiB), ContractError);
  space.give(a, {});
  EXPECT_EQ(space.footprint(), 4_MiB);
  EXPECT_EQ(space.excess(1_MiB), 1_MiB);
  EXPECT_TRUE(space.fits(1_MiB));
  EXPECT_FALSE(space.fits(1_MiB + 4_KiB));
  for (const AddressRange& range : space.take_from_gaps(1_MiB)) space.emptied(range);
  EXPECT_EQ(space.footprint(), 3_MiB);
  EXPECT_EQ(space.gaps(), 0_B);
  EXPECT_EQ(space.grow(1_MiB)->offset, a.offset) << "offsets are found again";
  EXPECT_NE(space.find(b), nullptr);
  EXPECT_EQ(space.find({b.offset, b.size, b.serial + 9}), nullptr);
}

TEST(SpillSpace, TakesFromSeveralGapsExactlyWhatIsWanted) {
  SpillSpace space(1_GiB, 2_GiB);
  std::vector<SpillSlot> slots;
  for (std::uint64_t pages = 1; pages <= 40; ++pages) slots.push_back(*space.grow(4_KiB * pages));
  for (std::size_t i = 0; i < slots.size(); i += 2) space.give(slots[i], {});
  const Bytes before = space.gaps();
  Bytes taken{};
  for (const AddressRange& range : space.take_from_gaps(4_KiB * 150)) taken += range.size;
  EXPECT_EQ(taken, 4_KiB * 150);
  EXPECT_EQ(space.gaps(), before - taken);
  EXPECT_EQ(space.take_from_gaps(1_GiB).empty(), false);
  EXPECT_EQ(space.gaps(), 0_B);
}

TEST(SpillSpace, UndoneSlotsLeaveNothing) {
  SpillSpace space(4_MiB, 8_MiB);
  const SpillSlot slot = *space.grow(4_MiB);
  space.undo(slot);
  EXPECT_EQ(space.footprint(), 0_B);
  EXPECT_EQ(space.in_use(), 0_B);
  EXPECT_EQ(space.grow(4_MiB)->offset, slot.offset);
}

// A slot is held for exactly the forks that happened between its taking and its giving.
TEST(SpillSpace, HoldsWhatAForkSawInUse) {
  SpillSpace space(16_MiB, 1_GiB);
  const SpillSlot given_before = *space.grow(1_MiB), seen_by_first = *space.grow(1_MiB);
  space.give(given_before, {});
  const std::uint64_t first = space.fork_time();
  const SpillSlot seen_by_second = *space.grow(2_MiB);
  space.give(seen_by_first, Forks{first});
  EXPECT_EQ(space.held(), 1_MiB);
  const std::uint64_t second = space.fork_time();
  const SpillSlot seen_by_none = *space.grow(4_MiB);
  space.give(seen_by_none, Forks{first, second});
  space.give(seen_by_second, Forks{first, second});
  EXPECT_EQ(space.held(), 3_MiB);
  EXPECT_FALSE(space.fits(14_MiB));
  space.release(Forks{first, second});
  EXPECT_EQ(space.held(), 3_MiB);
  space.release(Forks{second});
  EXPECT_EQ(space.held(), 2_MiB) << "the second fork never saw the first slot";
  space.release({});
  EXPECT_EQ(space.held(), 0_B);
  EXPECT_EQ(space.gaps(), 8_MiB);
}

TEST(Checksum, ChangesWithEachBitAndWithTheOrder) {
  std::vector<char> bytes(512, 0);
  const auto sum = [&bytes] {
    Checksum made;
    made.add(bytes.data(), bytes.size());
    return made.value();
  };
  const std::uint64_t plain = sum();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(1 << bit % 8);
    ASSERT_NE(sum(), plain) << bit;
    bytes[bit / 8] = 0;
  }
  bytes[3] = 1;
  const std::uint64_t one = sum();
  std::swap(bytes[3], bytes[11]);
  EXPECT_NE(sum(), one);
  // Without the checksum's rotation, the highest bits of neighbouring words would cancel each other.
  bytes.assign(bytes.size(), 0);
  bytes[7] = bytes[15] = static_cast<char>(0x80);
  EXPECT_NE(sum(), plain);
}

}  // namespace
}  // namespace ullage::store
