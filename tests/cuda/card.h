// SPDX-License-Identifier: Apache-2.0
#pragma once

// A fixture with a card of a given size on the stand-in driver. After each test, no page and no locked memory may be
// left.

#include "stand_in_driver.h"

#include "ullage/cuda/driver.h"

#include <gtest/gtest.h>

#include <memory>

namespace ullage::cuda {

class CardTest : public testing::Test {
 protected:
  void open(Bytes card, Bytes to_pin = 1_GiB) {
    stand_in_reset(card.count, to_pin.count);
    Result<std::unique_ptr<Driver>> driver = Driver::open(0, ULLAGE_STAND_IN_DRIVER);
    ASSERT_TRUE(driver) << driver.error().text();
    driver_ = std::move(*driver);
  }
  void TearDown() override {
    driver_.reset();
    const StandInCounts left = stand_in_counts();
    EXPECT_EQ(left.handles, 0u) << "pages of the card were lost";
    EXPECT_EQ(left.mapped, 0u);
    EXPECT_EQ(left.pinned, 0u) << "host memory stays locked";
  }

  static std::uint64_t* words(Address at) { return reinterpret_cast<std::uint64_t*>(at.value); }

  std::unique_ptr<Driver> driver_;
};

}  // namespace ullage::cuda
