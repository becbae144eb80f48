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
