// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include "ullage/cuda/card_pages.h"
#include "ullage/store/store.h"

#include <initializer_list>
#include <vector>

namespace ullage::cuda {
namespace {

using store::PageKind;

class CardPagesTest : public CardTest {
 protected:
  void open(Bytes card) {
    CardTest::open(card);
    pages_ = std::make_unique<CardPages>(*driver_);
    const auto all = pages_->reserve(1_GiB);
    ASSERT_TRUE(all) << all.error().text();
    at_ = all->begin;
  }
  void TearDown() override {
    pages_.reset();
    CardTest::TearDown();
  }

  std::unique_ptr<CardPages> pages_;
  Address at_;
};

TEST_F(CardPagesTest, HandsBytesFromOneAddressToAnother) {
  open(64_MiB);
  ASSERT_TRUE(pages_->fill(at_, 4_MiB, PageKind::Huge));
  *words(at_) = 7, *words(at_ + 2_MiB) = 8;
  ASSERT_TRUE(pages_->move(at_, at_ + 512_MiB, 4_MiB));
  EXPECT_EQ(*words(at_ + 512_MiB), 7u);
  EXPECT_EQ(*words(at_ + 514_MiB), 8u);
  EXPECT_EQ(stand_in_counts().used, (4_MiB).count);
  EXPECT_DEATH(*words(at_) = 1, "") << "nothing is behind the first address any more";
  pages_->drop(at_ + 512_MiB, 4_MiB);
  EXPECT_EQ(stand_in_counts().used, 0u);
}

TEST_F(CardPagesTest, CountsTheCallsOfTheDriver) {
  using store::DriverCalls;
  open(64_MiB);
  EXPECT_EQ(driver_->calls(), DriverCalls{});
  ASSERT_TRUE(pages_->fill(at_, 6_MiB, PageKind::Huge));
  // create, map, allow, unmap, release: pages one by one, ranges at once.
  EXPECT_EQ(driver_->calls(), (DriverCalls{3, 3, 1, 0, 0}));
  ASSERT_TRUE(pages_->move(at_, at_ + 512_MiB, 4_MiB));
  EXPECT_EQ(driver_->calls(), (DriverCalls{3, 5, 2, 1, 0}));
  pages_->drop(at_ + 512_MiB, 4_MiB);
  EXPECT_EQ(driver_->calls(), (DriverCalls{3, 5, 2, 2, 2}));
}

TEST_F(CardPagesTest, HasNoSmallPages) {
  open(64_MiB);
  EXPECT_EQ(pages_->granularity(), 2_MiB);
  EXPECT_FALSE(pages_->fill(at_, 256_KiB, PageKind::Small));
  EXPECT_EQ(stand_in_counts().used, 0u);
}

TEST_F(CardPagesTest, TakesNothingWhereTheCardHasTooLittle) {
  open(8_MiB);
  EXPECT_FALSE(pages_->fill(at_, 10_MiB, PageKind::Huge));
  EXPECT_EQ(stand_in_counts().used, 0u);
  EXPECT_EQ(stand_in_counts().mapped, 0u);
  EXPECT_TRUE(pages_->fill(at_, 8_MiB, PageKind::Huge));
}

// Makes each driver call that takes or maps memory fail, one after the other.
TEST_F(CardPagesTest, KeepsAllBytesWhereACallFails) {
  open(64_MiB);
  int failures = 0;
  for (int call = 1; call <= 24; ++call) {
    stand_in_fail(0);
    ASSERT_TRUE(pages_->fill(at_, 6_MiB, PageKind::Huge));
    for (std::uint64_t i = 0; i < 3; ++i) *words(at_ + 2_MiB * i) = 100 + i;
    stand_in_fail(call);
    Address now = at_;
    if (pages_->move(at_, at_ + 256_MiB, 6_MiB)) {
      now = at_ + 256_MiB;
    } else {
      ++failures;
    }
    failures += pages_->fill(at_ + 512_MiB, 6_MiB, PageKind::Huge) ? 0 : 1;
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(*words(now + 2_MiB * i), 100 + i) << "call " << call;
    const std::uint64_t used = stand_in_counts().used;
    ASSERT_TRUE(used == (6_MiB).count || used == (12_MiB).count) << used;
    pages_->drop(now, 6_MiB);
    if (used == (12_MiB).count) pages_->drop(at_ + 512_MiB, 6_MiB);
    ASSERT_EQ(stand_in_counts().used, 0u);
  }
  EXPECT_EQ(failures, 9) << "three maps, then three pages and three maps";
}

TEST_F(CardPagesTest, WaitsForKernelsBeforeItTakesTheirPages) {
  open(64_MiB);
  ASSERT_TRUE(pages_->fill(at_, 2_MiB, PageKind::Huge));
  stand_in_launch([](void* word) { *static_cast<std::uint64_t*>(word) = 42; }, words(at_), at_.value, 8);
  ASSERT_TRUE(pages_->move(at_, at_ + 256_MiB, 2_MiB));
  EXPECT_EQ(*words(at_ + 256_MiB), 42u);
  stand_in_launch([](void*) {}, nullptr, (at_ + 256_MiB).value, 8);
  pages_->drop(at_ + 256_MiB, 2_MiB);
  EXPECT_EQ(stand_in_counts().mapped, 0u);
}

TEST_F(CardPagesTest, CarriesAStoreThatRoundsToThem) {
  CardTest::open(64_MiB);
  pages_ = std::make_unique<CardPages>(*driver_);
  store::FixedLimit limit(12_MiB);
  auto store = store::Store::create(*pages_, limit);
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ((*store)->span(5_MiB), 6_MiB);
  const auto first = (*store)->allocate(5_MiB);
  ASSERT_TRUE(std::holds_alternative<Address>(first));
  EXPECT_EQ((*store)->counts().resident, 6_MiB);
  const auto second = (*store)->allocate(7_MiB);
  ASSERT_TRUE(std::holds_alternative<store::Refusal>(second));
  EXPECT_EQ(std::get<store::Refusal>(second).needed, 14_MiB);
  (*store)->free(std::get<Address>(first));
  const std::uint64_t waits = stand_in_counts().waits;
  EXPECT_EQ(std::get<Address>((*store)->allocate(6_MiB)), std::get<Address>(first)) << "the same address, as it is";
  EXPECT_EQ(stand_in_counts().waits, waits) << "a program whose sizes come again waits for nothing";
  EXPECT_LE(stand_in_counts().used_peak, (12_MiB).count);
}

// Each page that leaves is unmapped once, and each page that comes is mapped once.
TEST_F(CardPagesTest, AreMappedNowhereWhileTheyAreIdleAfterAnEviction) {
  using store::DriverCalls;
  CardTest::open(64_MiB);
  pages_ = std::make_unique<CardPages>(*driver_);
  store::FixedLimit limit(8_MiB);
  auto store = store::Store::create(*pages_, limit);
  ASSERT_TRUE(store) << store.error().text();
  const Address evicted = std::get<Address>((*store)->allocate(8_MiB));
  DriverCalls before = driver_->calls();
  const auto calls = [&] {
    DriverCalls now = driver_->calls();
    for (std::size_t i = 0; i < now.size(); ++i) now[i] -= before[i];
    before = driver_->calls();
    return now;
  };
  // create, map, allow, unmap, release
  (*store)->vacate(evicted);
  EXPECT_EQ(calls(), (DriverCalls{0, 0, 0, 1, 0}));
  const Address other = std::get<Address>((*store)->allocate(6_MiB));
  EXPECT_EQ(calls(), (DriverCalls{0, 3, 1, 0, 0}));
  (*store)->free(other);
  EXPECT_EQ(calls(), DriverCalls{});
  const Address staged = std::get<Address>((*store)->stage(evicted));
  EXPECT_EQ(calls(), (DriverCalls{0, 4, 1, 1, 0})) << "three pages were mapped elsewhere";
  EXPECT_EQ(staged, evicted);
  ASSERT_TRUE((*store)->settle(evicted, staged, store::Access::ReadWrite));
  EXPECT_EQ(calls(), DriverCalls{});
  (*store)->vacate(evicted);
  EXPECT_EQ((*store)->drop_idle(), 8_MiB);
  EXPECT_EQ(calls(), (DriverCalls{0, 0, 0, 1, 4}));
}

TEST_F(CardPagesTest, ServeOtherSizesWithoutACallOfTheDriver) {
  CardTest::open(64_MiB);
  pages_ = std::make_unique<CardPages>(*driver_);
  store::FixedLimit limit(12_MiB);
  auto store = store::Store::create(*pages_, limit);
  ASSERT_TRUE(store) << store.error().text();
  const auto take = [&](Bytes size) {
    const auto placed = (*store)->allocate(size);
    EXPECT_TRUE(std::holds_alternative<Address>(placed));
    return std::get<Address>(placed);
  };
  const auto take_and_free = [&](std::initializer_list<Bytes> sizes) {
    std::vector<Address> taken;
    for (const Bytes size : sizes) taken.push_back(take(size));
    for (const Address at : taken) (*store)->free(at);
  };
  take_and_free({12_MiB});
  const store::DriverCalls before = driver_->calls();
  take_and_free({4_MiB, 2_MiB, 6_MiB});  // parts of the run
  take_and_free({8_MiB, 4_MiB});         // which are joined again
  take_and_free({12_MiB});
  EXPECT_EQ(driver_->calls(), before);
  EXPECT_EQ((*store)->counts().resident, 12_MiB);
}

}  // namespace
}  // namespace ullage::cuda
