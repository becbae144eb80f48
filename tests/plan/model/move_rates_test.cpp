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
  EXPECT_EQ(rates_of(moves, Kernels::Processor).write, (512_MiB).count);
  EXPECT_EQ(rates_of(moves, Kernels::Processor).read, (2_GiB).count);
}

TEST(MoveRates, OnACardAreThoseOfBothTogether) {
  store::PagerCounts moves;
  moves.written = 1_GiB, moves.restored = 2_GiB, moves.waited = {2.5}, moves.background = {0.5};
  moves.writing = {2.0}, moves.reading = {1.0};
  EXPECT_EQ(rates_of(moves, Kernels::Card).write, (1_GiB).count);
  EXPECT_EQ(rates_of(moves, Kernels::Card).read, (1_GiB).count);
}

TEST(MoveRates, AreThoseOfBothWhereOneDirectionIsNotMeasured) {
  store::PagerCounts moves;
  EXPECT_EQ(rates_of(moves, Kernels::Processor).write, Rates{}.write) << "nothing was moved";
  moves.written = 1_GiB, moves.writing = {2.0}, moves.waited = {4.0};
  moves.restored = 1_MiB, moves.reading = {0.5};
  EXPECT_EQ(rates_of(moves, Kernels::Processor).write, (512_MiB).count);
  EXPECT_EQ(rates_of(moves, Kernels::Processor).read, static_cast<double>((1_GiB + 1_MiB).count) / 4);
}

}  // namespace
}  // namespace ullage::plan
