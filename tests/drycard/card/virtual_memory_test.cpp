// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include <gtest/gtest.h>

#include <vector>

namespace ullage::drycard {
namespace {

struct Properties {  // CUmemAllocationProp: pinned, on card 0
  int type = 1, handle_types = 0, where = 1, card = 0;
  void* windows = nullptr;
  unsigned char flags[8] = {};
};

TEST(DryCardVirtualMemory, IsMappedAndUnmappedInOneCall) {
  CardLibrary card({});
  const Properties properties;
  std::size_t granularity = 0;
  EXPECT_EQ(card("cuMemGetAllocationGranularity", &granularity, &properties, 0), 0);
  EXPECT_EQ(granularity, 2 * kMib);
  std::uintptr_t range = 0;
  EXPECT_EQ(card("cuMemAddressReserve", &range, 100 * kGib, std::size_t{0}, std::uintptr_t{0}, 0ull), 0);
  EXPECT_EQ(card.ledger().card[0].used.load(), 0u);
  std::vector<std::uint64_t> handles(3);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    EXPECT_EQ(card("cuMemCreate", &handles[i], 20 * kMib, &properties, 0ull), 0);
    EXPECT_EQ(card("cuMemMap", range + i * 20 * kMib, 20 * kMib, std::size_t{0}, handles[i], 0ull), 0);
  }
  EXPECT_NE(card("cuMemMap", range + 20 * kMib, 20 * kMib, std::size_t{0}, handles[0], 0ull), 0);
  EXPECT_EQ(card.ledger().card[0].used.load(), 60 * kMib);
  for (const std::uint64_t handle : handles) EXPECT_EQ(card("cuMemRelease", handle), 0);
  EXPECT_EQ(card.ledger().card[0].used.load(), 60 * kMib);  // the mappings hold the pages
  EXPECT_NE(card("cuMemAddressFree", range, 100 * kGib), 0);
  EXPECT_NE(card("cuMemUnmap", range, 30 * kMib), 0);  // half of a mapping; the whole one before it is unmapped
  EXPECT_EQ(card("cuMemUnmap", range + 20 * kMib, 40 * kMib), 0);
  EXPECT_EQ(card.ledger().card[0].used.load(), 0u);
  EXPECT_EQ(card("cuMemAddressFree", range, 100 * kGib), 0);
}

TEST(DryCardVirtualMemory, IsRefusedWhereItDoesNotFit) {
  CardLibrary card({{"ULLAGE_DRYCARD_MEMORY", std::to_string(kGib)}});
  const Properties properties;
  std::uint64_t handle = 0;
  EXPECT_EQ(card("cuMemCreate", &handle, 2 * kGib, &properties, 0ull), 2);
  EXPECT_EQ(card.ledger().refused_request.load(), 2 * kGib);
}

TEST(DryCardVirtualMemory, IsFoundByTheEntryPoints) {
  CardLibrary card({});
  void* function = nullptr;
  int status = -1;
  EXPECT_EQ(card("cudaGetDriverEntryPointByVersion", "cuMemCreate", &function, 12000u, 0ull, &status), 0);
  EXPECT_EQ(function, card.find("cuMemCreate"));
  EXPECT_EQ(card("cuGetProcAddress_v2", "cuMemGetInfo", &function, 12000, std::uint64_t{0}, &status), 0);
  EXPECT_EQ(function, card.find("cuMemGetInfo_v2"));
  EXPECT_EQ(card("cudaGetDriverEntryPointByVersion", "cuNoSuchThing", &function, 12000u, 0ull, &status), 0);
  EXPECT_EQ(card.ledger().unknown[0].set.load(), 0u);
  EXPECT_EQ(reinterpret_cast<int (*)()>(function)(), 0);
  EXPECT_STREQ(card.ledger().unknown[0].text.data(), "cuNoSuchThing");
}

}  // namespace
}  // namespace ullage::drycard
