// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cards.h"

#include <gtest/gtest.h>

namespace ullage::drycard {
namespace {

TEST(Cards, AreFoundByEachWayToWriteThem) {
  for (const char* name : {"rtx3090", "RTX 3090", "NVIDIA GeForce RTX 3090", "GeForce RTX-3090"}) {
    const auto card = find_card(name);
    ASSERT_TRUE(card) << name;
    EXPECT_EQ(card->name, "rtx3090");
  }
  EXPECT_FALSE(find_card("rtx3091"));
  EXPECT_FALSE(find_card(""));
}

TEST(Cards, OfTheTableAreWhole) {
  EXPECT_GE(card_names().size(), 17u);
  for (const std::string_view name : card_names()) {
    const auto card = find_card(name);
    ASSERT_TRUE(card) << name;
    EXPECT_EQ(card->name, name);
    EXPECT_EQ(card->total % 4096, 0u) << name;
    EXPECT_LT(card->context, card->total / 8) << name;
    EXPECT_LE(CardModel::kSharedPerBlock, card->shared_per_block_optin) << name;
    EXPECT_LE(card->shared_per_block_optin, card->shared_per_multiprocessor) << name;
    EXPECT_GT(card->multiprocessors, 0) << name;
  }
}

TEST(Cards, OfASizeAloneAreLikeAnA100) {
  const CardModel card = card_of_size(std::uint64_t{24} << 30);
  EXPECT_EQ(card.total, std::uint64_t{24} << 30);
  EXPECT_EQ(card.major, 8);
  EXPECT_EQ(card.minor, 0);
}

}  // namespace
}  // namespace ullage::drycard
