// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/move_rates.h"

#include <gtest/gtest.h>

namespace ullage::plan {
namespace {

TEST(MoveRates, DifferOutAndBack) {
  store::PagerCounts moves;
  moves.written = 1_GiB, moves.writing = {2.0};
  moves.restored = 2_GiB, moves.reading = {1.0};
  moves.waited = {2.5}, moves.background = {0.5};
  EXPECT_EQ(rates_of(moves).write, (512_MiB).count);
  EXPECT_EQ(rates_of(moves).read, (2_GiB).count);
}

TEST(MoveRates, AreThoseOfBothWhereOneDirectionIsNotMeasured) {
  store::PagerCounts moves;
  EXPECT_EQ(rates_of(moves).write, Rates{}.write) << "nothing was moved";
  moves.written = 1_GiB, moves.writing = {2.0}, moves.waited = {4.0};
  moves.restored = 1_MiB, moves.reading = {0.5};
  EXPECT_EQ(rates_of(moves).write, (512_MiB).count);
  EXPECT_EQ(rates_of(moves).read, static_cast<double>((1_GiB + 1_MiB).count) / 4);
}

}  // namespace
}  // namespace ullage::plan
