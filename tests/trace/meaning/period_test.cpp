// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/period.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace ullage::trace {
namespace {

struct Sequence {
  std::vector<std::uint64_t> symbols, levels;
  void add(std::uint64_t symbol, std::uint64_t level) {
    symbols.push_back(symbol);
    levels.push_back(level);
  }
  std::vector<std::size_t> turns() const { return find_turns(symbols, levels); }
};

// Adds a turn: a beginning, `layers` equal layers of ten symbols, an end. The level rises within the turn.
void add_turn(Sequence& sequence, std::uint64_t layers, std::uint64_t around = 10) {
  std::uint64_t level = 0;
  for (std::uint64_t i = 0; i < around; ++i) sequence.add(1000 + i, level++);
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    for (std::uint64_t i = 0; i < 10; ++i) sequence.add(i, level++);
  }
  for (std::uint64_t i = 0; i < around; ++i) sequence.add(2000 + i, level++);
}

TEST(Period, OfNothingIsNone) {
  EXPECT_TRUE(Sequence().turns().empty());
  Sequence same;
  for (int i = 0; i < 3; ++i) same.add(1, 1);
  EXPECT_TRUE(same.turns().empty());
}

TEST(Period, OfRandomSymbolsIsNone) {
  std::mt19937_64 random(1);
  Sequence sequence;
  for (int i = 0; i < 10000; ++i) sequence.add(random() % 50, random() % 1000);
  EXPECT_TRUE(sequence.turns().empty());
}

TEST(Period, IsTheWholeTurnNotTheLayers) {
  for (const std::uint64_t layers : {1u, 3u, 12u, 48u}) {
    Sequence sequence;
    for (int i = 0; i < 6; ++i) add_turn(sequence, layers);
    const std::vector<std::size_t> turns = sequence.turns();
    ASSERT_EQ(turns.size(), 6u) << layers;
    for (std::size_t i = 0; i < turns.size(); ++i) EXPECT_EQ(turns[i], i * (20 + 10 * layers));
  }
}

TEST(Period, IsFoundBehindABeginningOfAnotherKind) {
  Sequence sequence;
  for (std::uint64_t i = 0; i < 300; ++i) sequence.add(5000 + i, i);
  for (int i = 0; i < 20; ++i) add_turn(sequence, 4);
  const std::vector<std::size_t> turns = sequence.turns();
  ASSERT_EQ(turns.size(), 20u);
  EXPECT_EQ(turns.front(), 300u);
}

// The beginning has symbols that occur only once, and these do not contradict any period.
TEST(Period, IsTheWholeTurnBehindALongBeginning) {
  Sequence sequence;
  for (std::uint64_t i = 0; i < 3000; ++i) sequence.add(5000 + i, i);
  for (int i = 0; i < 20; ++i) add_turn(sequence, 12);
  const std::vector<std::size_t> turns = sequence.turns();
  ASSERT_EQ(turns.size(), 20u);
  EXPECT_EQ(turns[1] - turns[0], 140u);
}

TEST(Period, BeginsWhereTheLevelIsLowest) {
  Sequence sequence;
  for (std::uint64_t i = 0; i < 100; ++i) sequence.add(2000 + i, 300 + i);  // the end of a turn
  for (int i = 0; i < 5; ++i) add_turn(sequence, 4, 100);
  const std::vector<std::size_t> turns = sequence.turns();
  ASSERT_EQ(turns.size(), 5u);
  EXPECT_EQ(turns.front(), 100u);
}

// One turn in ten has some more symbols. The turns after it must be found again.
TEST(Period, OutlivesATurnOfAnotherLength) {
  Sequence sequence;
  std::vector<std::size_t> expected;
  for (int i = 0; i < 30; ++i) {
    expected.push_back(sequence.symbols.size());
    add_turn(sequence, 6, 100);
    if (i % 10 != 4) continue;
    for (std::uint64_t more = 0; more < 2; ++more) sequence.add(3000 + more, 300);
  }
  EXPECT_EQ(sequence.turns(), expected);
}

TEST(Period, NeedsThreeTurns) {
  Sequence sequence;
  for (int i = 0; i < 2; ++i) add_turn(sequence, 2);
  EXPECT_TRUE(sequence.turns().empty());
}

}  // namespace
}  // namespace ullage::trace
