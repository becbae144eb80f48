// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/budget.h"

#include <gtest/gtest.h>

namespace ullage::store {
namespace {

Bytes resident = 0_B;
Bytes others = 0_B;
Bytes read_resident() { return resident; }
Bytes read_others() { return others; }

class BudgetTest : public testing::Test {
 protected:
  void SetUp() override { resident = 105_MiB, others = 0_B; }
  Budget budget{1_GiB, 105_MiB, Budget::kWarmUp, &read_resident, &read_others};
};

TEST_F(BudgetTest, SetsAsideWhatLibrariesWillTake) {
  EXPECT_EQ(budget.resident_limit(0_B), 1_GiB - (105_MiB + Budget::kWarmUp + Budget::kMargin));
  resident = 134_MiB + 500_MiB;
  EXPECT_EQ(budget.resident_limit(500_MiB), 1_GiB - (105_MiB + Budget::kWarmUp + Budget::kMargin)) << "as expected";
  EXPECT_EQ(budget.outside(), 134_MiB);
}

TEST_F(BudgetTest, GivesWayWhenTheOutsideGrows) {
  resident = 700_MiB;
  EXPECT_EQ(budget.resident_limit(500_MiB), 1_GiB - (200_MiB + Budget::kMargin));
}

TEST_F(BudgetTest, KeepsRoomForCharges) {
  const Bytes before = budget.resident_limit(0_B);
  budget.charge(100_MiB);
  EXPECT_EQ(budget.resident_limit(0_B), before - 100_MiB);
  resident = 105_MiB + 100_MiB;  // the charged bytes have been taken: they are not counted twice
  EXPECT_EQ(budget.resident_limit(0_B), before - 100_MiB);
  budget.discharge(100_MiB);
  resident = 105_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before);
}

TEST_F(BudgetTest, CountsTheOtherProcessesOfTheTree) {
  const Bytes before = budget.resident_limit(0_B);
  others = 50_MiB;
  EXPECT_EQ(budget.resident_limit(0_B), before - 50_MiB);
}

TEST_F(BudgetTest, NeverGoesBelowZeroAndSaysWhatIsMissing) {
  resident = 3_GiB;
  EXPECT_EQ(budget.resident_limit(0_B), 0_B);
  EXPECT_EQ(budget.short_by(0_B), 2_GiB + Budget::kMargin);
  resident = 105_MiB + 300_MiB;
  EXPECT_EQ(budget.short_by(300_MiB), 0_B);
}

TEST_F(BudgetTest, OfZeroBytesIsNone) {
  Budget none(0_B, 105_MiB, Budget::kWarmUp, &read_resident, &read_others);
  resident = 100_GiB;
  EXPECT_GT(none.resident_limit(0_B), 1000_GiB);
}

}  // namespace
}  // namespace ullage::store
