// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/idle_pages.h"

#include <gtest/gtest.h>

namespace ullage::store {
namespace {

Address at(std::uint64_t mib) { return Address{(1ull << 40) + mib * (1_MiB).count}; }

Range mixed(std::uint64_t mib) {
  return {at(mib), 4_MiB + 128_KiB, {{4_MiB, PageKind::Huge}, {128_KiB, PageKind::Small}}};
}

TEST(IdlePages, GivesTheNewestRangeOfTheSize) {
  IdlePages idle;
  idle.add(mixed(0));
  idle.add(mixed(16));
  EXPECT_FALSE(idle.take_whole(4_MiB));
  EXPECT_EQ(idle.take_whole(4_MiB + 128_KiB)->at, at(16));
  EXPECT_EQ(idle.take_whole(4_MiB + 128_KiB)->at, at(0));
  EXPECT_FALSE(idle.take_whole(4_MiB + 128_KiB));
  EXPECT_EQ(idle.bytes(), 0_B);
  EXPECT_EQ(idle.pieces(), 0u);
}

TEST(IdlePages, TakesTheBestRangeApart) {
  IdlePages idle;
  idle.add(Range{at(64), 16_MiB, {{16_MiB, PageKind::Huge}}});
  idle.add(mixed(0));
  idle.add(mixed(16));
  const IdlePiece piece = *idle.take_to_move(PageKind::Huge, 2_MiB);
  EXPECT_EQ(piece.at, at(2)) << "from the end of the huge part of the older of the two that fit best";
  EXPECT_EQ(piece.length, 2_MiB);
  EXPECT_TRUE(idle.take_whole(16_MiB)) << "the others are still whole";
  EXPECT_TRUE(idle.take_whole(4_MiB + 128_KiB));
  EXPECT_EQ(idle.take_to_move(PageKind::Small, 1_MiB)->at, at(4));
  EXPECT_EQ(idle.bytes(), 2_MiB);
}

TEST(IdlePages, TakesTheLargestWhereNoneIsEnough) {
  IdlePages idle;
  for (const std::uint64_t mib : {4, 8, 6}) idle.add(Range{at(mib * 16), 1_MiB * mib, {{1_MiB * mib, PageKind::Huge}}});
  EXPECT_EQ(idle.take_to_move(PageKind::Huge, 20_MiB)->length, 8_MiB);
  EXPECT_EQ(idle.take_to_move(PageKind::Huge, 12_MiB)->length, 6_MiB);
  EXPECT_EQ(idle.take_to_move(PageKind::Huge, 6_MiB)->length, 4_MiB);
  EXPECT_FALSE(idle.take_to_move(PageKind::Huge, 2_MiB));
}

TEST(IdlePages, NeverMovesAcrossKinds) {
  IdlePages idle;
  idle.add(Range{at(0), 128_KiB, {{128_KiB, PageKind::Small}}});
  EXPECT_FALSE(idle.take_to_move(PageKind::Huge, 2_MiB));
  EXPECT_TRUE(idle.take_whole(128_KiB)) << "and leaves the range whole";
}

TEST(IdlePages, CrumbsAreOnlyGivenBack) {
  IdlePages idle;
  idle.add(Range{at(0), 100_KiB, {{100_KiB, PageKind::Small}}});
  EXPECT_EQ(idle.take_to_move(PageKind::Small, 80_KiB)->length, 80_KiB);
  EXPECT_FALSE(idle.take_to_move(PageKind::Small, 64_KiB)) << "20 KiB are not worth a mapping";
  EXPECT_EQ(idle.bytes(), 20_KiB);
  EXPECT_EQ(idle.take_to_drop(1_MiB)->length, 20_KiB);
  EXPECT_FALSE(idle.take_to_drop(1_MiB));
}

TEST(IdlePages, DropsWholePagesOfTheirKind) {
  IdlePages idle;
  idle.add(Range{at(0), 4_MiB, {{4_MiB, PageKind::Huge}}});
  EXPECT_EQ(idle.take_to_drop(1_B)->length, 2_MiB);
  idle.add(Range{at(8), 128_KiB, {{128_KiB, PageKind::Small}}});
  EXPECT_EQ(idle.take_to_drop(3_MiB)->kind, PageKind::Huge) << "pieces go before ranges";
  EXPECT_EQ(idle.take_to_drop(5000_B)->length, 8_KiB);
}

// On a card every page is a mapping of its own.
Range pages(std::uint64_t mib, Bytes size) { return {at(mib), size, {{size, PageKind::Huge}}}; }

TEST(IdlePages, OfACardAreCutAndJoined) {
  IdlePages idle(IdlePages::Join::Yes);
  idle.add(pages(0, 8_MiB));
  idle.add(pages(32, 4_MiB));
  EXPECT_EQ(idle.take_whole(4_MiB)->at, at(32)) << "the best fit";
  const Range part = *idle.take_whole(6_MiB);
  EXPECT_EQ(part.at, at(0));
  ASSERT_EQ(part.pieces.size(), 1u);
  EXPECT_EQ(part.pieces[0].length, 6_MiB);
  EXPECT_EQ(idle.bytes(), 2_MiB);
  idle.add(part);
  idle.add(pages(8, 2_MiB));
  EXPECT_EQ(idle.pieces(), 1u) << "neighbours are one run";
  EXPECT_EQ(idle.take_whole(10_MiB)->at, at(0));
  EXPECT_FALSE(idle.take_whole(2_MiB));
  EXPECT_EQ(idle.bytes(), 0_B);
}

TEST(IdlePages, OfACardMayHaveNoAddress) {
  IdlePages idle(IdlePages::Join::Yes);
  idle.add(pages(0, 4_MiB));
  idle.add_unmapped(6_MiB);
  EXPECT_EQ(idle.bytes(), 10_MiB);
  EXPECT_FALSE(idle.take_whole(6_MiB)) << "they are mapped nowhere";
  EXPECT_EQ(idle.take_unmapped(2_MiB), 2_MiB);
  EXPECT_EQ(idle.take_unmapped(8_MiB), 4_MiB) << "all that there are";
  EXPECT_EQ(idle.take_unmapped(2_MiB), 0_B);
  EXPECT_EQ(idle.bytes(), 4_MiB);
}

TEST(IdlePages, OfACardAreMovedInAsFewPiecesAsPossible) {
  IdlePages idle(IdlePages::Join::Yes);
  idle.add(pages(0, 2_MiB));
  idle.add(pages(16, 6_MiB));
  idle.add(pages(64, 4_MiB));
  const IdlePiece end = *idle.take_to_move(PageKind::Huge, 4_MiB);
  EXPECT_EQ(end.at, at(64)) << "the smallest run that is enough";
  EXPECT_EQ(end.length, 4_MiB);
  EXPECT_EQ(idle.take_to_move(PageKind::Huge, 10_MiB)->at, at(16)) << "none is enough: the largest";
  EXPECT_EQ(idle.take_to_drop(1_MiB)->length, 2_MiB) << "whole pages go back";
  EXPECT_FALSE(idle.take_to_drop(1_MiB));
  EXPECT_FALSE(idle.take_to_move(PageKind::Huge, 2_MiB));
}

}  // namespace
}  // namespace ullage::store
