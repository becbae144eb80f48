// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/spill_rates.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ullage::cli {
namespace {

TEST(SpillRates, AreNumbersAPlannerCanCountWith) {
  const Result<store::SpillPlace> place = store::default_spill_place();
  ASSERT_TRUE(place) << place.error().text();
  const Result<plan::Rates> rates = measure_rates(*place);
  ASSERT_TRUE(rates) << rates.error().text();
  for (const double rate : {rates->write, rates->read}) {
    EXPECT_TRUE(std::isfinite(rate));
    EXPECT_GT(rate, 1e4);
  }
}

// Every look at the clock finds that a quarter of a second has gone by; it looks twice after writing and
// once after reading.
TEST(SpillRates, AreThoseOfOnePieceAfterAStall) {
  const Result<store::SpillPlace> place = store::default_spill_place();
  ASSERT_TRUE(place) << place.error().text();
  double at = 0;
  const Result<plan::Rates> rates = measure_rates(*place, [&] { return at += 0.25; });
  ASSERT_TRUE(rates) << rates.error().text();
  EXPECT_DOUBLE_EQ(rates->write, (4_MiB).count / 0.5);
  EXPECT_DOUBLE_EQ(rates->read, (4_MiB).count / 0.25);
}

TEST(SpillRates, AreThoseOfWhatWasWrittenBeforeThePlaceFilledUp) {
  Result<store::SpillPlace> place = store::default_spill_place();
  ASSERT_TRUE(place) << place.error().text();
  place->most = 6_MiB;
  double at = 0;
  const Result<plan::Rates> rates = measure_rates(*place, [&] { return at += 0.01; });
  ASSERT_TRUE(rates) << rates.error().text();
  EXPECT_GT(rates->write, 0);
  EXPECT_GT(rates->read, 0);
}

TEST(SpillRates, OfAPlaceWithNoRoomAreAnError) {
  Result<store::SpillPlace> place = store::default_spill_place();
  ASSERT_TRUE(place) << place.error().text();
  place->most = 4_KiB;
  EXPECT_FALSE(measure_rates(*place));
  place->folder += "/no/such/folder";
  EXPECT_FALSE(measure_rates(*place));
}

}  // namespace
}  // namespace ullage::cli
