// SPDX-License-Identifier: Apache-2.0
// Tests what only the operating system can show: its own count of resident bytes, contents that move with their pages,
// and page faults. They do not run under sanitizers, whose shadow memory and fault handlers interfere.
#include "ullage/store/budget.h"
#include "ullage/store/os_pages.h"
#include "ullage/store/process_memory.h"
#include "ullage/store/store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace ullage::store {
namespace {

class StoreOnTheSystem : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Store::create(pages, limit);
    ASSERT_TRUE(made) << made.error().text();
    store = std::move(*made);
  }
  Address must(Bytes size) { return std::get<Address>(store->allocate(size)); }

  OsPages pages;
  FixedLimit limit{256_MiB};
  std::unique_ptr<Store> store;
};

TEST_F(StoreOnTheSystem, CountsWhatTheSystemCounts) {
  const Bytes before = resident_now();
  std::vector<Address> held;
  for (const Bytes size : {100_MiB, 7_MiB + 12_KiB, 300_KiB, 64_KiB}) {
    held.push_back(must(size));  // resident although it was never touched
  }
  const Bytes slack = 1_MiB;  // the kernel updates its counts in batches
  EXPECT_NEAR(double((resident_now() - before).count), double(store->counts().resident.count), double(slack.count));
  for (const Address at : held) store->free(at);
  EXPECT_NEAR(double((resident_now() - before).count), double(store->counts().resident.count), double(slack.count));
}

TEST_F(StoreOnTheSystem, MovedPagesKeepTheirBytes) {
  // A new storage's contents are undefined for users. Here they show that pages are reused and not replaced.
  const Address old = must(4_MiB);
  std::memset(reinterpret_cast<void*>(old.value), 0x77, (4_MiB).count);
  store->free(old);
  const Address fresh = must(2_MiB);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(*reinterpret_cast<unsigned char*>(fresh.value + 12345), 0x77);
}

TEST_F(StoreOnTheSystem, AForgottenAccessToADeadRangeFaults) {
  const Address dead = must(4_MiB);
  store->free(dead);
  must(4_MiB + 64_KiB);  // takes those pages, at another address
  EXPECT_EXIT(*reinterpret_cast<volatile char*>(dead.value) = 1, testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(StoreOnTheSystem, AnAccessToWhatWasHandedOverFaults) {
  const Address to = must(4_MiB);
  const Address from = must(4_MiB);
  store->vacate(to);
  ASSERT_TRUE(store->hand_over(from, to));
  *reinterpret_cast<volatile char*>(to.value) = 1;
  EXPECT_EXIT(static_cast<void>(*reinterpret_cast<volatile char*>(from.value)), testing::KilledBySignal(SIGSEGV), "");
}

// A real process: the pool fills its share, then memory outside grows, and the pool gives back idle pages.
TEST(BudgetOfAProcess, HoldsWhileTheOutsideGrows) {
  OsPages pages;
  const Bytes start = resident_now();
  const Bytes stated = start + Budget::kWarmUp + Budget::kMargin + 200_MiB;
  Budget real(stated, start, Budget::kWarmUp, &resident_now, nullptr);
  auto made = Store::create(pages, real);
  ASSERT_TRUE(made);
  Store& store = **made;

  std::vector<Address> held;
  for (;;) {
    const auto placed = store.allocate(10_MiB);
    if (std::holds_alternative<Refusal>(placed)) break;
    held.push_back(std::get<Address>(placed));
  }
  EXPECT_GE(held.size(), 18u);
  EXPECT_LE(held.size(), 20u);
  EXPECT_LE(resident_now(), stated);
  for (const Address block : held) store.free(block);
  EXPECT_GE(store.counts().idle, 180_MiB);

  // The outside grows by 150 MiB in pieces, and trim() is called after each, as the watch does.
  std::vector<std::unique_ptr<char[]>> outside;
  for (int i = 0; i < 30; ++i) {
    outside.push_back(std::make_unique<char[]>((5_MiB).count));
    for (std::size_t b = 0; b < (5_MiB).count; b += 4096) outside.back()[b] = 1;
    store.trim();
    ASSERT_LE(resident_now(), stated) << "after " << 5 * (i + 1) << " MiB outside";
  }
  EXPECT_LE(store.counts().resident, 110_MiB);
}

}  // namespace
}  // namespace ullage::store
