// SPDX-License-Identifier: Apache-2.0
// One conformance suite for the store, run with the operating system behind it and with nothing behind it. Placement
// and counts must be the same.
#include "ullage/store/store.h"

#include "ullage/store/os_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace ullage::store {
namespace {

template <class P>
class StoreConformance : public testing::Test {
 protected:
  static constexpr bool kReal = std::is_same_v<P, OsPages>;

  void SetUp() override { open(256_MiB); }
  void TearDown() override {
    if (store) check_sums();
  }

  void open(Bytes limit_bytes) {
    store.reset();
    pages = std::make_unique<P>();
    limit = std::make_unique<FixedLimit>(limit_bytes);
    auto made = Store::create(*pages, *limit);
    ASSERT_TRUE(made) << made.error().text();
    store = std::move(*made);
  }

  Address must(Bytes size) {
    const auto placed = store->allocate(size);
    if (const auto* refusal = std::get_if<Refusal>(&placed)) {
      ADD_FAILURE() << "refused " << size.count << " needs " << refusal->needed.count;
      return {};
    }
    const Address at = std::get<Address>(placed);
    write(at, size);
    return at;
  }

  void write(Address at, Bytes size) {
    if constexpr (kReal) std::memset(reinterpret_cast<void*>(at.value), 0x5a, size.count);
  }

  void check_sums() {
    const StoreCounts c = store->counts();
    EXPECT_LE(c.present + c.idle, c.resident);
    EXPECT_LE(c.present, c.live);
    EXPECT_LE(c.live, c.present + c.vacated);
    EXPECT_LE(c.resident, c.resident_peak);
    EXPECT_LE(c.live, c.live_peak);
    Bytes listed{};
    for (const LiveStorage& storage : store->live()) listed += storage.asked;
    EXPECT_EQ(listed, c.live);
  }

  std::unique_ptr<P> pages;
  std::unique_ptr<FixedLimit> limit;
  std::unique_ptr<Store> store;
};

using BothPages = testing::Types<NoPages, OsPages>;
TYPED_TEST_SUITE(StoreConformance, BothPages);

TYPED_TEST(StoreConformance, ListsWhatIsLiveByAddress) {
  const Address small = this->must(100_B), large = this->must(1_MiB), gone = this->must(100_B);
  const Address vacated = this->must(2_MiB);
  this->store->free(gone);
  this->store->vacate(vacated);
  std::vector<std::pair<Address, Bytes>> expected{{small, 100_B}, {large, 1_MiB}, {vacated, 2_MiB}};
  std::ranges::sort(expected);
  std::vector<std::pair<Address, Bytes>> listed;
  for (const LiveStorage& storage : this->store->live()) listed.emplace_back(storage.at, storage.asked);
  EXPECT_EQ(listed, expected);
}

TYPED_TEST(StoreConformance, AlignsBlocksAndRanges) {
  for (std::uint64_t size : {1, 63, 64, 65, 4095, 65535}) EXPECT_EQ(this->must(Bytes{size}).value % 64, 0u) << size;
  for (std::uint64_t size : {65536, 70000, 1 << 20}) EXPECT_EQ(this->must(Bytes{size}).value % 4096, 0u) << size;
  EXPECT_EQ(this->must(2_MiB).value % (2_MiB).count, 0u);
  EXPECT_EQ(this->must(5_MiB).value % (2_MiB).count, 0u);
}

TYPED_TEST(StoreConformance, ReusesADeadRangeOfTheSameSizeInPlace) {
  const Address first = this->must(5_MiB + 1_B);
  this->store->free(first);
  const StoreCounts before = this->store->counts();
  EXPECT_EQ(this->must(5_MiB + 7_B), first) << "the same number of pages";
  const StoreCounts after = this->store->counts();
  EXPECT_EQ(after.fresh, before.fresh);
  EXPECT_EQ(after.moved, before.moved);
}

TYPED_TEST(StoreConformance, HandsPagesOnToAnotherSize) {
  const Address large = this->must(64_MiB);
  this->store->free(large);
  const StoreCounts before = this->store->counts();
  const Address a = this->must(40_MiB);
  const Address b = this->must(24_MiB);
  const StoreCounts after = this->store->counts();
  EXPECT_NE(a, b);
  EXPECT_EQ(after.resident, before.resident);
  EXPECT_EQ(after.fresh, before.fresh) << "nothing was taken from the system";
  EXPECT_EQ(after.moved - before.moved, 64_MiB);
}

TYPED_TEST(StoreConformance, JoinsPagesOfManyDeadRanges) {
  std::vector<Address> dead;
  for (int i = 0; i < 20; ++i) dead.push_back(this->must(2_MiB + 4_KiB * 16));
  for (const Address at : dead) this->store->free(at);
  const Bytes resident = this->store->counts().resident;
  this->must(40_MiB);
  EXPECT_LE(this->store->counts().resident, resident);
}

TYPED_TEST(StoreConformance, ResidentFollowsTheLivePeak) {
  // A step with repeating shapes, in which small and huge storages peak at different times.
  for (int step = 0; step < 4; ++step) {
    std::vector<Address> held;
    for (int i = 0; i < 10; ++i) held.push_back(this->must(12_MiB + 300_KiB));
    for (const Address at : held) this->store->free(at);
    held.clear();
    for (int i = 0; i < 200; ++i) held.push_back(this->must(500_KiB + 4_KiB * static_cast<std::uint64_t>(i % 7)));
    for (const Address at : held) this->store->free(at);
  }
  const StoreCounts c = this->store->counts();
  EXPECT_LE(c.resident_peak.count, c.live_peak.count + c.live_peak.count / 50 + (2_MiB).count);
}

TYPED_TEST(StoreConformance, RefusesWhatDoesNotFitAndStaysUsable) {
  const Address a = this->must(200_MiB);
  const auto placed = this->store->allocate(100_MiB);
  ASSERT_TRUE(std::holds_alternative<Refusal>(placed));
  const Refusal refusal = std::get<Refusal>(placed);
  EXPECT_EQ(refusal.reason, Refusal::Reason::OverLimit);
  EXPECT_EQ(refusal.requested, 100_MiB);
  EXPECT_EQ(refusal.live, 200_MiB);
  EXPECT_EQ(refusal.resident, 200_MiB);
  EXPECT_EQ(refusal.limit, 256_MiB);
  EXPECT_EQ(refusal.needed, 300_MiB);
  EXPECT_EQ(this->store->counts().refused, 1u);
  this->must(56_MiB);  // to the last byte
  this->store->free(a);
  this->must(100_MiB);
}

TYPED_TEST(StoreConformance, NeededIsExactlyEnough) {
  this->open(300_MiB);
  this->must(200_MiB);
  this->must(100_MiB);
  this->open(300_MiB - 4_KiB);
  this->must(200_MiB);
  EXPECT_TRUE(std::holds_alternative<Refusal>(this->store->allocate(100_MiB)));
}

TYPED_TEST(StoreConformance, IdlePagesNeverStandInTheWay) {
  std::vector<Address> small;
  for (int i = 0; i < 1000; ++i) small.push_back(this->must(200_KiB));
  for (const Address at : small) this->store->free(at);
  this->must(250_MiB);  // idle pages of small blocks are given back to keep the limit
  EXPECT_LE(this->store->counts().resident, 256_MiB);
}

TYPED_TEST(StoreConformance, RefusesAHugeRequest) {
  for (const Bytes size : {Bytes{1ull << 41}, Bytes{1ull << 62}, Bytes{UINT64_MAX}}) {
    const auto placed = this->store->allocate(size);
    ASSERT_TRUE(std::holds_alternative<Refusal>(placed));
    EXPECT_EQ(std::get<Refusal>(placed).reason, Refusal::Reason::AddressSpace);
  }
  EXPECT_EQ(this->store->counts().live, 0_B);
}

TYPED_TEST(StoreConformance, PresentIsWhatHasBytesBehindIt) {
  Store& own = *this->store;
  const auto present = [&] { return own.counts().present; };
  const Address small = this->must(100_B);
  const Address at = this->must(3_MiB + 5_B);
  const Address other = this->must(70000_B);
  const Bytes all = 100_B + 3_MiB + 5_B + 70000_B;
  EXPECT_EQ(present(), all);
  own.vacate(at);
  EXPECT_EQ(present(), all - (3_MiB + 5_B));
  EXPECT_EQ(own.counts().live, all);
  const Address staged = std::get<Address>(own.stage(at));
  EXPECT_EQ(present(), all);
  own.unstage(staged);
  EXPECT_EQ(present(), 100_B + 70000_B);
  ASSERT_TRUE(own.settle(at, std::get<Address>(own.stage(at)), Access::ReadWrite));
  EXPECT_EQ(present(), all);
  EXPECT_EQ(own.counts().present_peak, all);
  own.vacate(at);
  own.free(at);
  EXPECT_EQ(present(), 100_B + 70000_B);
  own.free(other);
  EXPECT_EQ(present(), 100_B);
  EXPECT_EQ(own.counts().present_peak, all);
  own.restart_present_peak();
  EXPECT_EQ(own.counts().present_peak, 100_B);
  this->must(1_MiB);
  EXPECT_EQ(own.counts().present_peak, 1_MiB + 100_B);
  own.free(small);
  EXPECT_EQ(present(), 1_MiB);
}

TYPED_TEST(StoreConformance, HandsPagesOverFromOneStorageToAnother) {
  Store& own = *this->store;
  const Bytes size = 5_MiB + 12_KiB + 3_B;
  // The pages of `to` come from many free pieces.
  std::vector<Address> dead;
  for (int i = 0; i < 4; ++i) dead.push_back(this->must(2_MiB + 4_KiB * 20));
  for (const Address one : dead) own.free(one);
  const Address to = this->must(size);
  const Address from = this->must(size);
  own.vacate(to);
  if constexpr (TestFixture::kReal) std::memset(reinterpret_cast<void*>(from.value), 0x33, size.count);
  const StoreCounts before = own.counts();
  ASSERT_TRUE(own.hand_over(from, to));
  const StoreCounts after = own.counts();
  EXPECT_EQ(after.resident, before.resident);
  EXPECT_EQ(after.idle, before.idle);
  EXPECT_EQ(after.vacated, before.vacated);
  EXPECT_EQ(after.present, before.present);
  EXPECT_EQ(after.live, before.live);
  if constexpr (TestFixture::kReal) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(to.value);
    EXPECT_EQ(std::count(bytes, bytes + size.count, 0x33), static_cast<long>(size.count));
  }
  this->write(to, size);
  EXPECT_EQ(own.free(from), size);
  EXPECT_EQ(own.counts().vacated, 0_B);
  EXPECT_EQ(own.counts().present, size);
  EXPECT_EQ(own.free(to), size);
  EXPECT_EQ(own.counts().present, 0_B);
  this->must(40_MiB);
}

TYPED_TEST(StoreConformance, OnlyPagesOfTheSameSizeAreHandedOver) {
  Store& own = *this->store;
  const Address a = this->must(1_MiB);
  const Address b = this->must(1_MiB);
  const Address c = this->must(1_MiB - 1_B);
  EXPECT_THROW((void)own.hand_over(a, b), ContractError);
  own.vacate(a);
  EXPECT_THROW((void)own.hand_over(c, a), ContractError);
  EXPECT_THROW((void)own.hand_over(a, a), ContractError);
  EXPECT_THROW((void)own.hand_over(this->must(100_B), a), ContractError);
  EXPECT_TRUE(own.hand_over(b, a));
}

TYPED_TEST(StoreConformance, ContractsAreChecked) {
  EXPECT_THROW((void)this->store->allocate(0_B), ContractError);
  const Address a = this->must(1_MiB);
  EXPECT_THROW(this->store->free(a + 4_KiB), ContractError);
  EXPECT_EQ(this->store->free(a), 1_MiB);
  EXPECT_THROW(this->store->free(a), ContractError);
}

TYPED_TEST(StoreConformance, TrimKeepsAFallingLimit) {
  struct Falling final : Limit {
    Bytes now = 256_MiB;
    Bytes resident_limit(Bytes) override { return now; }
  } falling;
  TypeParam own_pages;
  auto made = Store::create(own_pages, falling);
  ASSERT_TRUE(made);
  Store& own = **made;
  const Address keep = std::get<Address>(own.allocate(40_MiB));
  own.free(std::get<Address>(own.allocate(100_MiB)));
  falling.now = 90_MiB;
  EXPECT_EQ(own.trim(), 50_MiB);
  EXPECT_EQ(own.trim(), 0_B);
  falling.now = 30_MiB;
  EXPECT_EQ(own.trim(), 50_MiB) << "live storages are not taken away";
  own.free(keep);
}

TYPED_TEST(StoreConformance, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::vector<std::pair<Address, Bytes>> held;
      std::uint64_t state = t + 1;
      for (int i = 0; i < 3000; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        if (held.size() > 20 || (!held.empty() && (state >> 33) % 2 == 0)) {
          this->store->free(held.back().first);
          held.pop_back();
        } else {
          const Bytes size{1 + (state >> 40) % ((state >> 35) % 16 == 0 ? 3000000 : 100000)};
          const auto placed = this->store->allocate(size);
          if (std::holds_alternative<Refusal>(placed)) continue;
          held.emplace_back(std::get<Address>(placed), size);
          this->write(held.back().first, size);
        }
      }
      for (const auto& [at, size] : held) this->store->free(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const StoreCounts c = this->store->counts();
  EXPECT_EQ(c.live, 0_B);
  EXPECT_EQ(c.resident, c.idle);
  EXPECT_EQ(c.allocations, c.frees);
}

// A limit that keeps what was leased, and what became of the lease.
struct LeasedLimit final : Limit {
  Bytes resident_limit(Bytes) override {
    leased_when_asked = leased;
    return 8_MiB;
  }
  void lease(Bytes bytes) override { leased += bytes; }
  void end_lease(Bytes bytes, Bytes took) override { leased -= bytes, taken += took; }
  Bytes leased, leased_when_asked, taken;
};

TEST(StoreLeases, WhatIsAskedForIsLeasedBeforeTheLimitIsLookedAt) {
  NoPages pages;
  LeasedLimit limit;
  const auto made = Store::create(pages, limit);
  Store* const store = made->get();
  const Address at = std::get<Address>(store->allocate(4_MiB));
  EXPECT_EQ(limit.leased_when_asked, 4_MiB);
  EXPECT_EQ(limit.leased, Bytes{});
  EXPECT_EQ(limit.taken, 4_MiB);
  EXPECT_TRUE(std::holds_alternative<Refusal>(store->allocate(6_MiB)));
  EXPECT_EQ(limit.leased, Bytes{});
  EXPECT_EQ(limit.taken, 4_MiB) << "nothing was taken";
  store->free(at);
  std::get<Address>(store->allocate(6_MiB));
  EXPECT_EQ(limit.taken, 6_MiB) << "four were idle";
}

}  // namespace
}  // namespace ullage::store
