// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <thread>

namespace ullage::cuda {
namespace {

class DriverTest : public CardTest {};

TEST_F(DriverTest, SaysWhatIsMissing) {
  const auto none = Driver::open(0, "libthere-is-no-such-driver.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Error::Kind::NotFound);
  EXPECT_NE(none.error().text().find("no NVIDIA driver on this machine"), std::string::npos);
  const auto old = Driver::open(0, "libm.so.6");
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().text().find("too old, it has no cuInit"), std::string::npos) << old.error().text();
  const auto other = Driver::open(7, ULLAGE_STAND_IN_DRIVER);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().text(), "no card with number 7");
}

TEST_F(DriverTest, TellsWhatTheCardHasLeft) {
  open(64_MiB);
  EXPECT_EQ(driver_->page(), 2_MiB);
  abi::Handle page = 0;
  ASSERT_EQ(driver_->create(page), abi::kSuccess);
  const Result<Driver::Memory> memory = driver_->memory();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 64_MiB);
  EXPECT_EQ(memory->free, 62_MiB);
  driver_->release(page);
}

TEST_F(DriverTest, SaysWhereTheCardIs) {
  open(64_MiB);
  const Result<std::string> bus_id = driver_->bus_id();
  ASSERT_TRUE(bus_id);
  EXPECT_EQ(*bus_id, kStandInBusId);
}

TEST_F(DriverTest, WorksOnThreadsWithoutAContextAndLeavesNone) {
  open(64_MiB);
  std::thread([this] {
    EXPECT_TRUE(driver_->memory());
    EXPECT_TRUE(driver_->synchronize());
  }).join();
}

TEST_F(DriverTest, GivesTheReasonInTheDriversWords) {
  open(64_MiB, 1_MiB);
  char host[8];
  const Status pinned = driver_->pin(host, 2_MiB);
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().text(), "cannot lock 2.00 MiB of the host's memory: out of memory (2)");
}

}  // namespace
}  // namespace ullage::cuda
