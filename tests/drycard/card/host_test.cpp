// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

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

// How many bytes of whole pages are in memory.
std::size_t resident(void* place, std::size_t bytes) {
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(::mincore(place, bytes, pages.data()), 0);
  return 4096 * static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }));
}

TEST(DryCardHost, UnknownBytesThatAreMovedOutTakeNoMemory) {
  constexpr std::size_t kSize = 16 * kMib;
  CardLibrary card({});
  void* device = nullptr;
  EXPECT_EQ(card("cudaMalloc", &device, kSize), 0);
  void* const own = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const bytes = static_cast<char*>(own);
  std::memset(own, 7, kSize);
  EXPECT_EQ(card("cuMemHostRegister_v2", own, kSize, 0u), 0);
  EXPECT_EQ(card("cudaMemcpy", static_cast<void*>(bytes + 5), static_cast<const void*>(device), kSize - 9, 2), 0);
  EXPECT_LE(resident(own, kSize), 4 * kMib);  // the pages at both ends
  EXPECT_EQ(bytes[4], 7);
  EXPECT_EQ(std::count(bytes + 5, bytes + kSize - 4, 0), static_cast<std::ptrdiff_t>(kSize - 9));
  EXPECT_EQ(bytes[kSize - 4], 7);
  ::munmap(own, kSize);
}

TEST(DryCardHost, UnknownBytesAreZerosInMemoryOfAFileToo) {
  constexpr std::size_t kSize = 8 * kMib;
  CardLibrary card({});
  void* device = nullptr;
  EXPECT_EQ(card("cudaMalloc", &device, kSize), 0);
  const int file = ::memfd_create("host_test", 0);
  ASSERT_EQ(::ftruncate(file, kSize), 0);
  for (const int sharing : {MAP_SHARED, MAP_PRIVATE}) {
    void* const own = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, sharing, file, 0);
    std::memset(own, 7, kSize);
    EXPECT_EQ(card("cuMemHostRegister_v2", own, kSize, 0u), 0);
    EXPECT_EQ(card("cudaMemcpy", own, static_cast<const void*>(device), kSize, 2), 0);
    EXPECT_EQ(std::count(static_cast<char*>(own), static_cast<char*>(own) + kSize, 0),
              static_cast<std::ptrdiff_t>(kSize));
    EXPECT_EQ(card("cuMemHostUnregister", own), 0);
    std::memset(own, 7, kSize);
    ::munmap(own, kSize);
  }
  ::close(file);
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
