// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include "ullage/cuda/card_pages.h"
#include "ullage/cuda/host_tier.h"
#include "ullage/store/spill_file.h"

#include <filesystem>

namespace ullage::cuda {
namespace {

using store::SpillSlot;
using store::Tier;

class HostTierTest : public CardTest {
 protected:
  void open(Bytes host, Bytes to_pin = 1_GiB, Bytes disk = {}) {
    CardTest::open(64_MiB, to_pin);
    pages_ = std::make_unique<CardPages>(*driver_);
    at_ = pages_->reserve(1_GiB)->begin;
    ASSERT_TRUE(pages_->fill(at_, 32_MiB, store::PageKind::Huge));
    if (disk > Bytes{}) {
      store::SpillFile::Options options;
      options.bridge = driver_.get();
      options.checksums = true;
      auto file = store::SpillFile::open({std::filesystem::temp_directory_path().string(), disk}, options);
      ASSERT_TRUE(file) << file.error().text();
      file_ = std::move(*file);
    }
    auto tier = HostTier::open(*driver_, host, file_.get());
    ASSERT_TRUE(tier) << tier.error().text();
    tier_ = std::move(*tier);
  }
  void TearDown() override {
    tier_.reset();
    pages_.reset();
    CardTest::TearDown();
  }
  void stamp(Address at, Bytes size, std::uint64_t seed) {
    for (std::uint64_t i = 0; i < size.count / 8; ++i) words(at)[i] = seed + i;
  }
  bool is_stamped(Address at, Bytes size, std::uint64_t seed) {
    for (std::uint64_t i = 0; i < size.count / 8; ++i)
      if (words(at)[i] != seed + i) return false;
    return true;
  }
  SpillSlot take(Bytes size) {
    const Result<SpillSlot> slot = tier_->take(size);
    EXPECT_TRUE(slot) << slot.error().text();
    return *slot;
  }
  void expect_round_trip(const SpillSlot& slot) {
    stamp(at_, slot.size, 11);
    ASSERT_TRUE(tier_->write(slot, at_, Tier::Sharing::None, nullptr));
    stamp(at_, slot.size, 99);
    ASSERT_TRUE(tier_->read(slot, at_ + 16_MiB));
    EXPECT_TRUE(is_stamped(at_ + 16_MiB, slot.size, 11));
  }

  std::unique_ptr<CardPages> pages_;
  std::unique_ptr<store::SpillFile> file_;
  std::unique_ptr<HostTier> tier_;
  Address at_;
};

TEST_F(HostTierTest, KeepsBytesInLockedMemory) {
  open(100_MiB);
  const SpillSlot slot = take(10_MiB);
  expect_round_trip(slot);
  EXPECT_EQ(tier_->counts().in_use, 10_MiB);
  EXPECT_EQ(tier_->counts().locked, 64_MiB);
  EXPECT_EQ(stand_in_counts().pinned, (64_MiB).count);
  const SpillSlot more = take(80_MiB);
  EXPECT_EQ(tier_->counts().locked, 100_MiB) << "the last piece ends with the range";
  tier_->give(slot);
  tier_->give(more);
  EXPECT_EQ(tier_->counts().in_use, Bytes{});
  EXPECT_EQ(tier_->counts().in_use_peak, 90_MiB);
}

TEST_F(HostTierTest, CopiesWhatLiesInTwoPiecesThatWereLocked) {
  open(100_MiB);
  const SpillSlot before = take(60_MiB);
  const SpillSlot slot = take(10_MiB);
  ASSERT_EQ(slot.offset, (60_MiB).count);
  expect_round_trip(slot);
  tier_->give(before);
  tier_->give(slot);
}

TEST_F(HostTierTest, CopiesWhatKernelsMadeAndNotWhatStoodThereBefore) {
  open(100_MiB);
  const SpillSlot slot = take(2_MiB);
  stamp(at_, 2_MiB, 1);
  stand_in_launch([](void* first) { *static_cast<std::uint64_t*>(first) = 77; }, words(at_), at_.value, 8);
  ASSERT_TRUE(tier_->write(slot, at_, Tier::Sharing::None, nullptr));
  // This kernel still reads the place that the bytes are to be restored to.
  static std::uint64_t seen = 0;
  words(at_ + 4_MiB)[0] = 5;
  stand_in_launch([](void* first) { seen = *static_cast<std::uint64_t*>(first); }, words(at_ + 4_MiB),
                  (at_ + 4_MiB).value, 8);
  ASSERT_TRUE(tier_->read(slot, at_ + 4_MiB));
  EXPECT_EQ(seen, 5u);
  EXPECT_EQ(words(at_ + 4_MiB)[0], 77u);
}

TEST_F(HostTierTest, PassesDownWhatFindsNoRoom) {
  open(4_MiB, 1_GiB, 32_MiB);
  const SpillSlot here = take(4_MiB);
  const SpillSlot below = take(6_MiB);
  EXPECT_EQ(here.height, 1u);
  EXPECT_EQ(below.height, 0u);
  expect_round_trip(below);
  expect_round_trip(here);
  EXPECT_EQ(tier_->counts().passed_down, 6_MiB);
  EXPECT_EQ(file_->counts().in_use, 6_MiB);
  tier_->give(below);
  EXPECT_EQ(file_->counts().in_use, Bytes{});
}

TEST_F(HostTierTest, SaysBothNumbersWhereNothingIsBelow) {
  open(4_MiB);
  take(4_MiB);
  const Result<SpillSlot> none = tier_->take(2_MiB);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "no room for 2.00 MiB (2097152 bytes) more in the host's memory, 4.00 MiB of 4.00 MiB (4194304 bytes) in "
            "use; raise it with --host-memory, or give a disk with --spill");
}

TEST_F(HostTierTest, SaysWhyNoMoreCanBeLocked) {
  open(128_MiB, 64_MiB);
  take(60_MiB);
  EXPECT_EQ(tier_->counts().lock_failure, "");
  const Result<SpillSlot> none = tier_->take(6_MiB);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "the host locks no more than 64.00 MiB of the 128.00 MiB that evicted tensors may take (cannot lock 64.00 "
            "MiB of the host's memory: out of memory (2)); give a disk with --spill");
  EXPECT_EQ(tier_->counts().lock_failure, "cannot lock 64.00 MiB of the host's memory: out of memory (2)");
}

TEST_F(HostTierTest, UsesWhatItCouldLock) {
  open(128_MiB, 64_MiB, 32_MiB);
  const SpillSlot first = take(60_MiB);
  EXPECT_EQ(first.height, 1u);
  EXPECT_EQ(take(6_MiB).height, 0u) << "no more of the host's memory can be locked";
  EXPECT_EQ(take(4_MiB).height, 1u) << "but there is a gap in what is";
}

TEST_F(HostTierTest, IsAWayToTheDiskWithoutHostMemory) {
  open({}, 1_GiB, 32_MiB);
  expect_round_trip(take(6_MiB));
  EXPECT_EQ(tier_->counts().locked, Bytes{});
}

}  // namespace
}  // namespace ullage::cuda
