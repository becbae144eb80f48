// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace ullage::drycard {
namespace {

constexpr int kOutOfMemory = 2;

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

TEST(DryCardMemory, GoesToTheLimitAndNoFurther) {
  CardLibrary card({{"ULLAGE_DRYCARD_MEMORY", std::to_string(kGib)}});
  const std::size_t free = card.free_bytes();
  EXPECT_EQ(free + card.ledger().card[0].context.load(), kGib);
  std::vector<std::uintptr_t> places;
  while (const std::uintptr_t at = card.allocate(100 * kMib - 1)) places.push_back(at);
  EXPECT_EQ(places.size(), free / (100 * kMib));
  EXPECT_EQ(card("cudaGetLastError"), kOutOfMemory);
  EXPECT_EQ(card("cudaGetLastError"), 0);
  EXPECT_EQ(card.ledger().refused.load(), 1u);
  EXPECT_EQ(card.ledger().refused_request.load(), 100 * kMib - 1);
  EXPECT_EQ(card.ledger().card[0].peak.load(), places.size() * 100 * kMib);
  for (const std::uintptr_t at : places) EXPECT_EQ(card.free(at), 0);
  EXPECT_EQ(card.free_bytes(), free);
  EXPECT_EQ(card.ledger().card[0].used.load(), 0u);
  EXPECT_NE(card.free(places[0]), 0);
}

TEST(DryCardMemory, TakesTheLowestFreeAddressAgain) {
  CardLibrary card({});
  const std::uintptr_t first = card.allocate(4 * kMib);
  const std::uintptr_t second = card.allocate(1);
  EXPECT_EQ(second, first + 4 * kMib);
  card.free(first);
  EXPECT_EQ(card.allocate(2 * kMib), first);
  EXPECT_EQ(card.allocate(2 * kMib), first + 2 * kMib);
  EXPECT_EQ(card.allocate(2 * kMib), second + 2 * kMib);
}

TEST(DryCardMemory, TakesNoMemoryOfTheHost) {
  CardLibrary card({{"ULLAGE_DRYCARD_CARD", "h100"}});
  const std::size_t before = resident_kib();
  const std::uintptr_t at = card.allocate(70 * kGib);
  ASSERT_NE(at, 0u);
  void* place = reinterpret_cast<void*>(at);
  EXPECT_EQ(card("cudaMemset", place, 1, 70 * kGib), 0);
  EXPECT_EQ(card("cudaMemcpy", place, static_cast<const void*>(reinterpret_cast<void*>(at + kGib)), 30 * kGib, 3), 0);
  EXPECT_LT(resident_kib() - before, 16u << 10);
}

TEST(DryCardMemory, GivesZerosAndCountsThem) {
  CardLibrary card({});
  void* place = reinterpret_cast<void*>(card.allocate(kMib));
  std::vector<char> host(1000, 'x');
  EXPECT_EQ(card("cudaMemcpy", place, static_cast<const void*>(host.data()), host.size(), 1), 0);
  EXPECT_EQ(card.ledger().reads.load(), 0u);
  EXPECT_EQ(card("cudaMemcpy", static_cast<void*>(host.data()), static_cast<const void*>(place), std::size_t{999}, 2),
            0);
  EXPECT_EQ(std::string(host.begin(), host.end()), std::string(999, '\0') + "x");
  EXPECT_EQ(card.ledger().reads.load(), 1u);
  EXPECT_EQ(card.ledger().read_bytes.load(), 999u);
}

TEST(DryCardMemory, IsCountedForEachCard) {
  CardLibrary card({{"ULLAGE_DRYCARD_COUNT", "2"}});
  card.allocate(4 * kMib);
  EXPECT_EQ(card("cudaSetDevice", 1), 0);
  const std::uintptr_t second = card.allocate(6 * kMib);
  EXPECT_EQ(card.ledger().card[0].used.load(), 4 * kMib);
  EXPECT_EQ(card.ledger().card[1].used.load(), 6 * kMib);
  struct {
    int type, device;
    void *device_pointer, *host_pointer;
    long reserved[8];
  } attributes;
  EXPECT_EQ(card("cudaPointerGetAttributes", &attributes, reinterpret_cast<const void*>(second + kMib)), 0);
  EXPECT_EQ(attributes.type, 2);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(card("cudaSetDevice", 2), 101);
  std::thread([&] { card.allocate(2 * kMib); }).join();  // a new thread starts with the first card
  EXPECT_EQ(card.ledger().card[0].used.load(), 6 * kMib);
}

TEST(DryCardMemory, OfThreadsAddsUp) {
  CardLibrary card({});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&card] {
      for (int turn = 0; turn < 300; ++turn) {
        const std::uintptr_t at = card.allocate(2 * kMib);
        const std::uintptr_t other = card.allocate(6 * kMib);
        EXPECT_NE(at, other);
        card.free(at);
        card.free(other);
      }
      card.allocate(2 * kMib);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(card.ledger().card[0].used.load(), 8 * kMib);
}

TEST(DryCardMemory, OfAPoolStaysWithinItsThreshold) {
  CardLibrary card({{"ULLAGE_DRYCARD_MEMORY", std::to_string(kGib)}});
  void* pool = nullptr;
  ASSERT_EQ(card("cudaDeviceGetDefaultMemPool", &pool, 0), 0);
  const auto attribute = [&](int which) {
    std::uint64_t value = 0;
    EXPECT_EQ(card("cudaMemPoolGetAttribute", pool, which, static_cast<void*>(&value)), 0);
    return value;
  };
  std::uint64_t keep = UINT64_MAX;
  EXPECT_EQ(card("cudaMemPoolSetAttribute", pool, 4, static_cast<void*>(&keep)), 0);
  void* stream = nullptr;
  void* place = nullptr;
  EXPECT_EQ(card("cudaMallocAsync", &place, 1000 * std::size_t{1}, stream), 0);
  EXPECT_EQ(attribute(7), 1024u);
  EXPECT_EQ(attribute(5), 32 * kMib);
  EXPECT_EQ(card("cudaFreeAsync", place, stream), 0);
  EXPECT_EQ(attribute(5), 32 * kMib);
  // Idle memory of the pool is freed if another request needs it.
  EXPECT_NE(card.allocate(card.free_bytes() + 16 * kMib), 0u);
  EXPECT_EQ(attribute(5), 0u);
  EXPECT_EQ(card("cudaMallocAsync", &place, 64 * kMib, stream), kOutOfMemory);
}

}  // namespace
}  // namespace ullage::drycard
