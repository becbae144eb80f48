// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ullage::drycard {
namespace {

TEST(DryCardHost, MemoryIsRealAndCounted) {
  CardLibrary card({});
  void* pinned = nullptr;
  EXPECT_EQ(card("cudaHostAlloc", &pinned, std::size_t{5000}, 0u), 0);
  EXPECT_EQ(card.ledger().pinned.load(), 8192u);
  std::memset(pinned, 7, 5000);
  char to[10] = {};
  EXPECT_EQ(card("cudaMemcpy", static_cast<void*>(to), static_cast<const void*>(pinned), sizeof to, 4), 0);
  EXPECT_EQ(to[9], 7);
  EXPECT_EQ(card("cudaFreeHost", pinned), 0);
  EXPECT_EQ(card.ledger().pinned.load(), 0u);
  EXPECT_EQ(card.ledger().pinned_peak.load(), 8192u);
  EXPECT_NE(card("cudaFreeHost", pinned), 0);
}

TEST(DryCardHost, MemoryOfTheProgramIsLocked) {
  CardLibrary card({});
  char own[64];
  EXPECT_EQ(card("cudaHostRegister", static_cast<void*>(own), sizeof own, 0u), 0);
  EXPECT_EQ(card("cudaHostRegister", static_cast<void*>(own), sizeof own, 0u), 712);
  EXPECT_EQ(card("cudaHostUnregister", static_cast<void*>(own)), 0);
  EXPECT_EQ(card("cudaHostUnregister", static_cast<void*>(own)), 713);
}

TEST(DryCardHost, ManagedMemoryIsOfBoth) {
  CardLibrary card({});
  void* place = nullptr;
  EXPECT_EQ(card("cudaMallocManaged", &place, 3 * kMib, 1u), 0);
  static_cast<char*>(place)[3 * kMib - 1] = 5;
  EXPECT_EQ(card.ledger().card[0].used.load(), 4 * kMib);
  EXPECT_EQ(card.ledger().card[0].managed.load(), 4 * kMib);
  EXPECT_EQ(card("cudaFree", place), 0);
  EXPECT_EQ(card.ledger().card[0].used.load(), 0u);
}

}  // namespace
}  // namespace ullage::drycard
