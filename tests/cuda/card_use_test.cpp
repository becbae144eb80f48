// SPDX-License-Identifier: Apache-2.0
#include "card.h"
#include "stand_in_nvml.h"

#include "ullage/cuda/card_use.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace ullage::cuda {
namespace {

using std::chrono::milliseconds;
using Way = CardUse::Way;

// A card of 1 GiB: 200 MiB belong to others, 100 MiB to this process's context. What the process takes comes on top.
class CardUseTest : public CardTest {
 protected:
  void SetUp() override {
    open(1_GiB);
    stand_in_nvml_reset((1_GiB).count);
    stand_in_hold((300_MiB).count);
  }
  void TearDown() override {
    use_.reset();
    EXPECT_EQ(stand_in_nvml_started(), 0);
    give(pages_.size());
    CardTest::TearDown();
  }

  void make(const std::string& nvml = ULLAGE_STAND_IN_NVML) {
    use_ = CardUse::of(*driver_, nvml, [this] { return std::chrono::steady_clock::time_point(milliseconds{time_}); });
  }
  // Takes pages of 2 MiB each.
  void take(std::size_t pages) {
    for (; pages > 0; --pages) ASSERT_EQ(driver_->create(pages_.emplace_back()), abi::kSuccess);
  }
  void give(std::size_t pages) {
    for (; pages > 0; --pages, pages_.pop_back()) driver_->release(pages_.back());
  }
  static void list(std::vector<StandInProcess> processes) {
    stand_in_nvml_list(processes.data(), static_cast<unsigned>(processes.size()));
  }
  static StandInProcess other(Bytes used, std::uint32_t pid = 1) { return {pid, used.count}; }
  static StandInProcess own(Bytes used) { return {static_cast<std::uint32_t>(::getpid()), used.count}; }
  void wait(milliseconds time) { time_ += time.count(); }
  // Runs `what` during each of the next questions to NVML.
  void during(std::function<void()> what) {
    meanwhile_ = std::move(what);
    stand_in_nvml_during([](void* all) { static_cast<CardUseTest*>(all)->meanwhile_(); }, this);
  }
  void expect_unknown(const std::string& reason) {
    EXPECT_EQ(use_->knowledge().way, Way::Unknown);
    EXPECT_NE(use_->knowledge().reason.find(reason), std::string::npos) << use_->knowledge().reason;
  }

  std::unique_ptr<CardUse> use_;
  std::vector<abi::Handle> pages_;
  std::atomic<std::int64_t> time_ = 5;  // milliseconds
  std::function<void()> meanwhile_;
};

TEST_F(CardUseTest, TakesItsOwnEntryFromAllOthers) {
  take(2);
  list({other(150_MiB), own(104_MiB), other(40_MiB, 2)});
  make();
  EXPECT_EQ(use_->now(), 104_MiB);
  EXPECT_EQ(use_->others(), 200_MiB) << "10 MiB of them the driver's";
  EXPECT_EQ(use_->knowledge().way, Way::OwnEntry);
  EXPECT_EQ(use_->knowledge().reason, "");
}

TEST_F(CardUseTest, FindsItselfAmongManyProcesses) {
  std::vector<StandInProcess> many;
  for (std::uint32_t i = 0; i < 200; ++i) many.push_back(other(1_MiB, 1000000000 + i));
  many.push_back(own(100_MiB));
  list(many);
  make();
  EXPECT_EQ(use_->knowledge().way, Way::OwnEntry);
  EXPECT_EQ(use_->others(), 200_MiB);
}

TEST_F(CardUseTest, CountsGrowthBetweenQuestionsAsItsOwn) {
  list({own(100_MiB)});
  make();
  take(5);
  EXPECT_EQ(use_->now(), 110_MiB);
  give(2);
  EXPECT_EQ(use_->now(), 106_MiB);
  EXPECT_EQ(stand_in_nvml_questions(), 1u);
}

TEST_F(CardUseTest, IsTheOnlyProcessThatIsListedByAnotherNumber) {
  list({other(100_MiB, 546113)});
  make();
  EXPECT_EQ(use_->now(), 100_MiB);
  EXPECT_EQ(use_->knowledge().way, Way::OnlyEntry);
}

TEST_F(CardUseTest, KeepsItsNumberWhenOthersCome) {
  list({other(100_MiB, 546113)});
  make();
  list({other(50_MiB, 546200), other(100_MiB, 546113)});
  stand_in_hold((350_MiB).count);
  EXPECT_EQ(use_->now(), 150_MiB) << "not asked yet";
  wait(milliseconds{250});
  EXPECT_EQ(use_->now(), 100_MiB);
  EXPECT_EQ(use_->knowledge().way, Way::OnlyEntry);
}

TEST_F(CardUseTest, TakesAnEntryThatComesTwiceForOne) {
  list({own(100_MiB), own(100_MiB)});
  make();
  EXPECT_EQ(use_->others(), 200_MiB);
  list({other(100_MiB, 546113), other(100_MiB, 546113)});
  make();
  EXPECT_EQ(use_->others(), 200_MiB);
  EXPECT_EQ(use_->knowledge().way, Way::OnlyEntry);
}

TEST_F(CardUseTest, CountsAllAsItsOwnAmongStrangers) {
  list({other(100_MiB, 1000000001), other(200_MiB, 1000000002)});
  make();
  EXPECT_EQ(use_->now(), 300_MiB);
  EXPECT_EQ(use_->others(), 0_B);
  expect_unknown("process " + std::to_string(::getpid()) + " is not among the 2 that NVML lists");
}

TEST_F(CardUseTest, CountsAllAsItsOwnWhereNobodyIsListed) {
  make();
  EXPECT_EQ(use_->now(), 300_MiB);
  expect_unknown("is not among the 0 that NVML lists");
}

TEST_F(CardUseTest, CountsAllAsItsOwnWhereNoBytesAreSaid) {
  list({own({kStandInNotAvailable})});
  make();
  EXPECT_EQ(use_->now(), 300_MiB);
  expect_unknown("NVML does not report how much a process holds");
}

TEST_F(CardUseTest, CountsAllAsItsOwnWithoutNvml) {
  make("libthere-is-no-such-nvml.so.1");
  EXPECT_EQ(use_->now(), 300_MiB);
  expect_unknown("no NVML on this machine: libthere-is-no-such-nvml.so.1");
  make("libm.so.6");
  EXPECT_EQ(use_->now(), 300_MiB);
  expect_unknown("libm.so.6: NVML is too old, it has no nvmlInit_v2");
}

TEST_F(CardUseTest, CountsAllAsItsOwnWhereNvmlRefuses) {
  list({own(100_MiB)});
  stand_in_nvml_refuse(4);
  make();
  EXPECT_EQ(use_->now(), 300_MiB);
  expect_unknown("NVML has no card at 0000:3B:00.0: Insufficient Permissions (4)");
}

// On a divided card (MIG), the driver reports an instance, but NVML the whole card.
TEST_F(CardUseTest, DoesNotAskAboutADividedCard) {
  list({own(100_MiB)});
  stand_in_nvml_reset((2_GiB).count);
  make();
  wait(milliseconds{1000});
  EXPECT_EQ(use_->now(), 300_MiB);
  EXPECT_EQ(stand_in_nvml_questions(), 0u);
  expect_unknown("NVML reports a card of 2.00 GiB, the driver one of 1.00 GiB");
}

TEST_F(CardUseTest, AllowsForWhatTheDriverKeepsForItself) {
  stand_in_nvml_reset((1_GiB + 50_MiB).count);
  list({own(100_MiB)});
  make();
  EXPECT_EQ(use_->now(), 100_MiB);
}

TEST_F(CardUseTest, LearnsThatOthersGrewAndShrank) {
  list({own(100_MiB)});
  make();
  stand_in_hold((420_MiB).count);
  EXPECT_EQ(use_->now(), 220_MiB) << "kept too well";
  wait(milliseconds{250});
  EXPECT_EQ(use_->now(), 100_MiB);
  EXPECT_EQ(use_->others(), 320_MiB);
  stand_in_hold((150_MiB).count);
  EXPECT_EQ(use_->now(), 0_B) << "and too badly, but not below zero";
  wait(milliseconds{250});
  EXPECT_EQ(use_->now(), 100_MiB);
  EXPECT_EQ(use_->others(), 50_MiB);
}

TEST_F(CardUseTest, AsksNvmlNoMoreOftenThanItSays) {
  list({own(100_MiB)});
  make();
  wait(milliseconds{249});
  for (int i = 0; i < 1000; ++i) use_->now();
  EXPECT_EQ(stand_in_nvml_questions(), 1u);
  wait(milliseconds{1});
  for (int i = 0; i < 1000; ++i) use_->now();
  EXPECT_EQ(stand_in_nvml_questions(), 2u);
  wait(milliseconds{10000});
  for (int i = 0; i < 1000; ++i) use_->now();
  EXPECT_EQ(stand_in_nvml_questions(), 3u);
}

// The pause counts from the end of a question, however long that took.
TEST_F(CardUseTest, RestsAfterASlowQuestion) {
  list({own(100_MiB)});
  during([this] { wait(milliseconds{1000}); });
  make();
  wait(milliseconds{249});
  use_->now();
  EXPECT_EQ(stand_in_nvml_questions(), 1u);
}

TEST_F(CardUseTest, KeepsWhatItKnewWhileNvmlFails) {
  list({own(100_MiB)});
  make();
  stand_in_nvml_refuse(15);
  wait(milliseconds{250});
  take(1);
  EXPECT_EQ(use_->now(), 102_MiB);
  expect_unknown("NVML does not list the card's processes: refused (15)");
  stand_in_nvml_refuse(0);
  list({own(102_MiB)});
  wait(milliseconds{250});
  EXPECT_EQ(use_->now(), 102_MiB);
  EXPECT_EQ(use_->knowledge().way, Way::OwnEntry);
}

TEST_F(CardUseTest, DoesNotTakeForOthersWhatItGaveBackDuringAQuestion) {
  take(10);
  during([this] {
    give(10);
    list({own(100_MiB)});
  });
  make();
  EXPECT_EQ(use_->others(), 200_MiB);
  EXPECT_EQ(use_->now(), 100_MiB);
}

TEST_F(CardUseTest, DoesNotTakeForOthersWhatItTookDuringAQuestion) {
  list({own(100_MiB)});
  during([this] { take(10); });
  make();
  EXPECT_EQ(use_->others(), 200_MiB);
  EXPECT_EQ(use_->now(), 120_MiB);
}

TEST_F(CardUseTest, LetsNobodyWaitForAnothersQuestion) {
  list({own(100_MiB)});
  make();
  Bytes seen;
  during([&] { std::thread([&] { seen = use_->now(); }).join(); });
  wait(milliseconds{250});
  EXPECT_EQ(use_->now(), 100_MiB);
  EXPECT_EQ(seen, 100_MiB);
  EXPECT_EQ(stand_in_nvml_questions(), 2u);
}

TEST_F(CardUseTest, HoldsWhatItHeldWhenTheCardAnswersNoMore) {
  list({own(100_MiB)});
  make();
  take(1);
  EXPECT_EQ(use_->now(), 102_MiB);
  stand_in_break();
  EXPECT_EQ(use_->now(), 102_MiB);
  make();
  expect_unknown("the driver does not report the card's free memory");
  EXPECT_EQ(stand_in_nvml_started(), 0) << "that of before is gone, and this one was not started";
}

TEST_F(CardUseTest, IsAskedByManyThreadsAtOnce) {
  list({own(100_MiB)});
  make();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int step = 0; step < 2000; ++step) {
        wait(milliseconds{1});
        if (use_->now() != 100_MiB || use_->others() != 200_MiB) ++wrong;
        if (use_->knowledge().way != Way::OwnEntry) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(stand_in_nvml_questions(), 2u);
  EXPECT_LE(stand_in_nvml_questions(), 1u + 8000 / 250);
}

}  // namespace
}  // namespace ullage::cuda
