// SPDX-License-Identifier: Apache-2.0
#include "pooled.h"

#include "ullage/runtime/runtime.h"
#include "ullage/store/process_memory.h"

#include <ATen/Parallel.h>
#include <unistd.h>

namespace ullage::runtime {
namespace {

TEST(Session, IsNotThereInAPlainRun) {
  if (active()) GTEST_SKIP() << "another test of this process started a session first; ctest runs each test alone";
  EXPECT_EQ(Session::current(), nullptr);
  mark_step();
  report_state("abc");
  EXPECT_EQ(memory_status().budget, 0_B);
  EXPECT_EQ(charge_outside(1_GiB, "a picture"), nullptr);
}

TEST(Session, RefusesABudgetBelowWhatTheProcessHolds) {
  if (active()) GTEST_SKIP() << "another test of this process started a session first; ctest runs each test alone";
  Session::Settings settings;
  settings.budget = 50_MiB;
  const Result<Session*> started = Session::start(std::move(settings));
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().text().find("50.00 MiB"), std::string::npos);
  EXPECT_NE(started.error().text().find("state at least"), std::string::npos);
  EXPECT_FALSE(active()) << "and nothing was put in";
}

// The operating system judges by the peak, which is above this budget already.
TEST(Session, RefusesABudgetBelowWhatTheProcessHeldOnce) {
  if (active()) GTEST_SKIP() << "another test of this process started a session first; ctest runs each test alone";
  Session::Settings settings;
  settings.budget = 500_MiB, settings.held_once = 600_MiB;
  const Result<Session*> started = Session::start(std::move(settings));
  ASSERT_FALSE(started);
  const std::string text = started.error().text();
  EXPECT_NE(text.find("the budget of 500.00 MiB is below what the process needs"), std::string::npos) << text;
  EXPECT_NE(text.find("while it was loaded"), std::string::npos) << text;
  EXPECT_NE(text.find("state at least"), std::string::npos) << text;
}

TEST(Session, WritesTheLedger) {
  pooled();
  const torch::Tensor held = torch::ones({50, 1024, 1024}, torch::kByte);
  mark_step();
  usleep(50000);
  store::LedgerSlot& slot = test_slot();
  EXPECT_GE(slot.pool_live.load(), 50u << 20);
  EXPECT_GE(slot.pool_resident.load(), slot.pool_live.load());
  EXPECT_GE(slot.rss.load(), slot.pool_resident.load());
  EXPECT_GE(slot.rss_peak.load(), slot.rss.load());
  EXPECT_GT(slot.outside.load(), 50u << 20);
  EXPECT_GE(slot.steps.load(), 1u);
  EXPECT_EQ(slot.threads.load(), static_cast<std::uint64_t>(at::get_num_threads()));
  report_state("0123");
  EXPECT_EQ(slot.state_sha256.get(), "0123");
  EXPECT_EQ(memory_status().budget, kTestBudget);
}

TEST(Session, AChargeKeepsRoomFree) {
  Session& session = pooled();
  {
    const auto charge = charge_outside(400_MiB, "a picture");
    ASSERT_NE(charge, nullptr);
    EXPECT_THROW((void)torch::empty({600, 1024, 1024}, torch::kByte), c10::OutOfMemoryError);
  }
  EXPECT_NO_THROW((void)torch::empty({600, 1024, 1024}, torch::kByte));
  EXPECT_THROW((void)charge_outside(2_GiB, "a bomb"), c10::OutOfMemoryError);
  EXPECT_NO_THROW((void)torch::empty({600, 1024, 1024}, torch::kByte)) << "a refused charge is not held";
  EXPECT_EQ(test_slot().last_op.get(), "a bomb");
  (void)session;
}

// Ullage's promise must hold also while memory grows that does not come from torch's allocators.
TEST(Session, TheProcessStaysWithinItsBudgetWhileMallocGrows) {
  pooled();
  { const torch::Tensor filled = torch::ones({750, 1024, 1024}, torch::kByte); }  // leaves idle pages to give back
  std::vector<std::unique_ptr<char[]>> outside;
  for (int i = 0; i < 60; ++i) {
    outside.push_back(std::make_unique<char[]>(8 << 20));
    std::memset(outside.back().get(), 1, 8 << 20);
    usleep(10000);  // the watch checks every few milliseconds
    ASSERT_LE(store::resident_now(), kTestBudget);
  }
  EXPECT_LE(store::resident_peak(), kTestBudget);
  EXPECT_EQ(test_slot().over_budget.load(), 0u);
  EXPECT_GT(test_slot().given_back.load(), 300u << 20);
}

TEST(Session, SaysHowManyStepsAreLeftWhenTheOutsideLeaks) {
  pooled();
  std::vector<std::unique_ptr<char[]>> leak;
  for (int step = 0; step < 40; ++step) {
    leak.push_back(std::make_unique<char[]>(6 << 20));
    std::memset(leak.back().get(), 1, 6 << 20);
    usleep(10000);
    mark_step();
  }
  const std::string said = test_slot().message.get();
  EXPECT_NE(said.find("steps are left"), std::string::npos) << said;
  EXPECT_NE(said.find("outside the pool grows by"), std::string::npos) << said;
}

TEST(Session, SaysSoWhenTheBudgetIsPassed) {
  pooled();
  // More than the whole budget is outside the pool. Nothing can prevent that, but it must be reported.
  std::vector<char> outside((kTestBudget + 100_MiB).count, 1);
  usleep(100000);
  EXPECT_GT(test_slot().over_budget.load(), 90u << 20);
  EXPECT_NE(test_slot().message.get().find("passed its budget"), std::string::npos);
}

TEST(Session, AWarningKeepsTheWordsOfARefusal) {
  pooled();
  EXPECT_THROW(torch::empty({1 << 30}), c10::OutOfMemoryError);
  const std::string refusal = test_slot().message.get();
  std::vector<char> outside((kTestBudget + 100_MiB).count, 1);
  usleep(100000);
  EXPECT_GT(test_slot().over_budget.load(), 90u << 20);
  EXPECT_EQ(test_slot().message.get(), refusal);
}

}  // namespace
}  // namespace ullage::runtime
