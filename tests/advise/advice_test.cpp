// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/advice.h"

#include <gtest/gtest.h>

namespace ullage::advise {
namespace {

Row row(const char* id, std::optional<bool> fits, std::uint64_t mib, Effect effect, std::optional<double> time = {}) {
  Row row;
  row.id = id, row.fits = fits, row.effect = effect, row.more_time = time;
  if (mib > 0) row.peak = Bytes{mib << 20};
  return row;
}

std::string order_of(std::vector<Row> rows) {
  Advice advice;
  advice.rows = std::move(rows);
  sort_rows(advice);
  std::string order;
  for (const Row& one : advice.rows) order += one.id;
  return order;
}

TEST(Advice, WhatFitsComesFirstThenWhatKeepsTheBits) {
  EXPECT_EQ(order_of({row("a", false, 10, Effect::SameBits), row("b", true, 9, Effect::Rounding),
                      row("c", true, 9, Effect::SameBits), row("d", true, 1, Effect::Different)}),
            "cbda");
}

TEST(Advice, OfEqualEffectTheFasterThenTheSmaller) {
  EXPECT_EQ(order_of({row("a", true, 5, Effect::SameBits, 0.2), row("b", true, 4, Effect::SameBits),
                      row("c", true, 9, Effect::SameBits, 0.1), row("d", true, 3, Effect::SameBits)}),
            "cadb");
}

TEST(Advice, WhatDoesNotFitIsOrderedByItsPeakAndWithoutOneLast) {
  EXPECT_EQ(order_of({row("a", std::nullopt, 0, Effect::SameBits), row("b", false, 7, Effect::SameBits),
                      row("c", false, 3, Effect::Different)}),
            "cba");
}

TEST(Advice, WhatIsOnlyComputedComesAfterWhatWasTried) {
  Row computed = row("a", true, 1, Effect::SameBits);
  computed.basis = Basis::Computed;
  Row planned = row("b", true, 8, Effect::SameBits, 0.5);
  planned.basis = Basis::Planned;
  EXPECT_EQ(order_of({computed, planned, row("c", true, 8, Effect::Different)}), "bca");
}

}  // namespace
}  // namespace ullage::advise
