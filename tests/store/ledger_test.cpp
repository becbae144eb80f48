// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace ullage::store {
namespace {

// Runs `work` in a forked child and returns its exit code, or -signal. Returns 99 if `work` threw.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = work();
    } catch (...) {
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

class LedgerTest : public testing::Test {
 protected:
  void SetUp() override { unsetenv(Ledger::kVariable); }
  void TearDown() override { unsetenv(Ledger::kVariable); }

  Ledger make(Bytes budget = 1_GiB) { return make({.budget = budget, .spill_folder = "", .spill_limit = {}}); }
  Ledger make(const LedgerSettings& settings) {
    Result<Ledger> made = Ledger::create(settings);
    EXPECT_TRUE(made.ok());
    Ledger ledger = std::move(made).value();
    setenv(Ledger::kVariable, ledger.environment_value(getpid()).c_str(), 1);
    return ledger;
  }

  // The slot becomes that of a process which lives.
  static void live(LedgerSlot& slot) { slot.pid.store(getppid()); }
  // The process holds `bytes`, and the launcher has counted and seen them.
  static void hold(LedgerSlot& slot, Bytes bytes) {
    for (Word* word : {&slot.rss, &slot.rss_counted, &slot.rss_seen}) word->store(bytes.count);
  }
};

TEST_F(LedgerTest, IsFreshWithTheBudgetWrittenIn) {
  const Ledger ledger = make(900_MiB);
  EXPECT_EQ(ledger.page().budget.load(), (900_MiB).count);
  EXPECT_EQ(ledger.page().magic, LedgerPage::kMagic);
  EXPECT_EQ(ledger.page().size, sizeof(LedgerPage));
  for (const LedgerSlot& slot : ledger.page().slots) EXPECT_EQ(slot.pid.load(), 0);
}

TEST_F(LedgerTest, TellsTheProgramWhereToSpillAndHowMuch) {
  const Ledger ledger = make({.budget = 1_GiB, .spill_folder = "/var/tmp/spill", .spill_limit = 7_GiB});
  const int code = in_child([] {
    Result<Ledger> mine = Ledger::attach_from_environment();
    if (!mine) return 1;
    if (mine->page().spill_folder.get() != "/var/tmp/spill") return 2;
    return mine->page().spill_limit.load() == (7_GiB).count ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(LedgerTest, TellsTheProgramWhichCardTheBudgetIsOfAndHowMuchHostMemoryIsForWhatLeavesIt) {
  LedgerSettings settings{.budget = 4_GiB, .spill_folder = "", .spill_limit = {}};
  settings.card = 0, settings.host_memory = 6_GiB;
  const Ledger ledger = make(settings);
  const int code = in_child([] {
    Result<Ledger> mine = Ledger::attach_from_environment();
    if (!mine) return 1;
    if (mine->page().card.load() != 1) return 2;  // 0 says that there is none
    return mine->page().host_memory.load() == (6_GiB).count ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
  settings.card = 3;
  EXPECT_EQ(make(settings).page().card.load(), 4u);
  EXPECT_EQ(make(1_GiB).page().card.load(), 0u);
}

TEST_F(LedgerTest, SaysNoSpillingInOneWayOnly) {
  const Ledger no_room = make({.budget = 1_GiB, .spill_folder = "/var/tmp", .spill_limit = {}});
  EXPECT_EQ(no_room.page().spill_folder.get(), "");
  const Ledger no_folder = make({.budget = 1_GiB, .spill_folder = "", .spill_limit = 1_GiB});
  EXPECT_EQ(no_folder.page().spill_limit.load(), 0u);
}

TEST_F(LedgerTest, RefusesAFolderThatItWouldCut) {
  const Result<Ledger> ledger =
      Ledger::create({.budget = 1_GiB, .spill_folder = "/" + std::string(1024, 'a'), .spill_limit = 1_GiB});
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().kind, Error::Kind::BadArgument);
  EXPECT_NE(ledger.error().text().find("1025 bytes, at most 1024"), std::string::npos) << ledger.error().text();
}

TEST_F(LedgerTest, StandsAboveTheDescriptorsThatScriptsUseAndIsInherited) {
  const Ledger ledger = make();
  EXPECT_GE(ledger.fd(), 100);
  EXPECT_EQ(fcntl(ledger.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(LedgerTest, CannotBeShortenedUnderTheLauncher) {
  const Ledger ledger = make();
  EXPECT_NE(ftruncate(ledger.fd(), 0), 0);
}

TEST_F(LedgerTest, CarriesWhatAChildWrote) {
  const Ledger ledger = make();
  const int code = in_child([] {
    Result<Ledger> mine = Ledger::attach_from_environment();
    if (!mine) return 1;
    LedgerSlot* slot = mine->claim_slot();
    if (slot == nullptr || slot->pid.load() != getpid()) return 2;
    slot->steps.store(12);
    raise_to(slot->rss_peak, 500);
    raise_to(slot->rss_peak, 400);
    slot->message.set("all is well");
    slot->ended.store(1);
    return 0;
  });
  ASSERT_EQ(code, 0);
  const LedgerSlot& slot = ledger.page().slots[0];
  EXPECT_EQ(slot.steps.load(), 12u);
  EXPECT_EQ(slot.rss_peak.load(), 500u);
  EXPECT_EQ(slot.message.get(), "all is well");
  EXPECT_EQ(slot.ended.load(), 1u);
}

TEST_F(LedgerTest, StaysReadableWhenTheWriterIsKilled) {
  const Ledger ledger = make();
  const pid_t child = fork();
  if (child == 0) {
    Result<Ledger> mine = Ledger::attach_from_environment();
    LedgerSlot* slot = mine->claim_slot();
    const std::string text(512, 'x');
    for (std::uint64_t n = 1;; ++n) {  // until it is killed
      slot->steps.store(n);
      slot->step_us[n % LedgerSlot::kStepTimes].store(7);
      slot->message.set(n % 2 == 0 ? "short" : text);
    }
  }
  const LedgerSlot& slot = ledger.page().slots[0];
  while (slot.steps.load() < 1000) usleep(100);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(slot.pid.load(), child);
  EXPECT_GE(slot.steps.load(), 1000u);
  const std::size_t length = slot.message.get().size();
  EXPECT_TRUE(length == 0 || length == 5 || length == 512) << length;
  EXPECT_EQ(slot.ended.load(), 0u);
}

TEST_F(LedgerTest, IsNotFoundInAPlainRun) {
  const Result<Ledger> ledger = Ledger::attach_from_environment();
  ASSERT_FALSE(ledger.ok());
  EXPECT_EQ(ledger.error().kind, Error::Kind::NotFound);
}

TEST_F(LedgerTest, RefusesWordsThatNameNoDescriptor) {
  for (const char* text : {"x", "-1", "3x", "3:", "3:x", "3:0", "99999999999"}) {
    setenv(Ledger::kVariable, text, 1);
    const Result<Ledger> ledger = Ledger::attach_from_environment();
    ASSERT_FALSE(ledger.ok()) << text;
    EXPECT_EQ(ledger.error().kind, Error::Kind::BadArgument) << text;
  }
}

TEST_F(LedgerTest, RefusesADescriptorThatIsNoLedger) {
  const int closed = 977;
  const int null = open("/dev/null", O_RDWR);
  const int empty = memfd_create("empty", 0);
  const int zeros = memfd_create("zeros", 0);
  ASSERT_EQ(ftruncate(zeros, sizeof(LedgerPage)), 0);
  for (int fd : {closed, null, empty, zeros}) {
    setenv(Ledger::kVariable, std::to_string(fd).c_str(), 1);
    const Result<Ledger> ledger = Ledger::attach_from_environment();
    ASSERT_FALSE(ledger.ok()) << fd;
    EXPECT_EQ(ledger.error().kind, Error::Kind::BadFile);
    EXPECT_NE(ledger.error().text().find("not a ledger of Ullage"), std::string::npos) << ledger.error().text();
  }
  for (int fd : {null, empty, zeros}) close(fd);
}

TEST_F(LedgerTest, RefusesThePageOfAnotherBuildAndSaysBothLayouts) {
  {
    Ledger ledger = make();
    ledger.page().layout = 77;
    const Result<Ledger> other = Ledger::attach_from_environment();
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.error().text().find("layout 77"), std::string::npos) << other.error().text();
    EXPECT_NE(other.error().text().find("layout " + std::to_string(LedgerPage::kLayout)), std::string::npos)
        << other.error().text();
  }
  Ledger ledger = make();
  ledger.page().size = 64;
  const Result<Ledger> other = Ledger::attach_from_environment();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, Error::Kind::BadFile);
  EXPECT_NE(other.error().text().find("64 bytes"), std::string::npos) << other.error().text();
}

TEST_F(LedgerTest, RefusesAPageThatIsShorterThanItSays) {
  LedgerPage page;
  page.size = sizeof(LedgerPage);
  const int fd = memfd_create("short", 0);
  ASSERT_EQ(write(fd, &page, 4096), 4096);
  setenv(Ledger::kVariable, std::to_string(fd).c_str(), 1);
  EXPECT_FALSE(Ledger::attach_from_environment().ok());
  close(fd);
}

TEST_F(LedgerTest, IsFoundAgainWhereAParentClosedTheDescriptor) {
  const Ledger ledger = make();
  const int code = in_child([&ledger] {
    close(ledger.fd());  // as Python's subprocess does with all descriptors
    Result<Ledger> mine = Ledger::attach_from_environment();
    if (!mine) return 1;
    mine->claim_slot()->steps.store(3);
    return 0;
  });
  ASSERT_EQ(code, 0);
  EXPECT_EQ(ledger.page().slots[0].steps.load(), 3u);
}

TEST_F(LedgerTest, GivesAProcessTheSameSlotAgain) {
  Ledger ledger = make();
  LedgerSlot* first = ledger.claim_slot();
  EXPECT_EQ(ledger.claim_slot(), first);
}

TEST_F(LedgerTest, GivesProcessesSlotsOfTheirOwn) {
  Ledger ledger = make();
  LedgerSlot* mine = ledger.claim_slot();
  ASSERT_EQ(in_child([&] { return ledger.claim_slot() == mine ? 1 : 0; }), 0);
  EXPECT_EQ(mine->pid.load(), getpid());
}

// Fills every slot with a living process. The destructor ends them.
class LivingOwners final {
 public:
  explicit LivingOwners(Ledger& ledger) {
    for (LedgerSlot& slot : ledger.page().slots) {
      const pid_t child = fork();
      if (child == 0) {
        for (;;) pause();
      }
      children_.push_back(child);
      slot.pid.store(child);
      slot.rss_peak.store(1000 + children_.size());
      slot.steps.store(5);
    }
  }
  ~LivingOwners() {
    for (pid_t child : children_) end(child);
  }
  void end(pid_t child) {
    if (child == 0) return;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (pid_t& one : children_) {
      if (one == child) one = 0;
    }
  }
  pid_t operator[](std::size_t i) const { return children_[i]; }

 private:
  std::vector<pid_t> children_;
};

TEST_F(LedgerTest, GivesNoSlotWhenAllOwnersLive) {
  Ledger ledger = make();
  const LivingOwners owners(ledger);
  EXPECT_EQ(ledger.claim_slot(), nullptr);
}

TEST_F(LedgerTest, ReusesTheSlotOfTheDeadWithTheLowestPeakAndWipesIt) {
  Ledger ledger = make();
  LivingOwners owners(ledger);
  owners.end(owners[9]);
  owners.end(owners[4]);
  ledger.page().slots[4].message.set("old");
  ledger.page().slots[4].ended.store(1);
  LedgerSlot* slot = ledger.claim_slot();
  ASSERT_EQ(slot, &ledger.page().slots[4]);  // 1005 is below 1010
  EXPECT_EQ(slot->pid.load(), getpid());
  EXPECT_EQ(slot->rss_peak.load(), 0u);
  EXPECT_EQ(slot->steps.load(), 0u);
  EXPECT_EQ(slot->ended.load(), 0u);
  EXPECT_EQ(slot->message.get(), "");
  EXPECT_EQ(ledger.page().slots[9].rss_peak.load(), 1010u);
}

TEST_F(LedgerTest, ReusesTheSlotOfAProcessThatSaidGoodbye) {
  Ledger ledger = make();
  LivingOwners owners(ledger);
  ledger.page().slots[3].ended.store(1);
  EXPECT_EQ(ledger.claim_slot(), &ledger.page().slots[3]);
}

TEST_F(LedgerTest, KeepsTheHighestPeaksThroughManyShortProcesses) {
  Ledger ledger = make();
  for (std::uint64_t n = 1; n <= 3 * LedgerPage::kSlots; ++n) {
    ASSERT_EQ(in_child([&ledger, n] {
                LedgerSlot* slot = ledger.claim_slot();
                if (slot == nullptr) return 1;
                slot->rss_peak.store(n == 2 ? 9999 : n);
                return 0;
              }),
              0)
        << n;
  }
  std::uint64_t highest = 0;
  for (const LedgerSlot& slot : ledger.page().slots) highest = std::max(highest, slot.rss_peak.load());
  EXPECT_EQ(highest, 9999u);
}

TEST_F(LedgerTest, TellsWhatTheOthersHoldAsCountedAndHowTheyGrewSince) {
  Ledger ledger = make();
  LedgerSlot* own = ledger.claim_slot();
  LedgerSlot& other = ledger.page().slots[1];
  LedgerSlot& gone = ledger.page().slots[2];
  other.pid.store(getppid()), gone.pid.store(getppid()), gone.ended.store(1);
  own->rss.store((900_MiB).count), own->others.store((100_MiB).count);
  other.rss.store((340_MiB).count), other.rss_counted.store((300_MiB).count);
  gone.rss.store((70_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 140_MiB);
  EXPECT_EQ(processes_beside(ledger.page(), own), 1u);
  EXPECT_EQ(processes_beside(ledger.page(), nullptr), 2u);
  // Without a slot: growth since each was counted, `own` too.
  EXPECT_EQ(others_of(ledger.page(), nullptr).held, 940_MiB);
  other.rss.store((200_MiB).count);  // shrank: ignored until the next count
  EXPECT_EQ(others_of(ledger.page(), own).held, 100_MiB);
}

TEST_F(LedgerTest, PagesThatWereSharedAndAreNoMoreAreTheOthersToo) {
  Ledger ledger = make();
  LedgerSlot* own = ledger.claim_slot();
  LedgerSlot& other = ledger.page().slots[1];
  other.pid.store(getppid());
  own->others.store((100_MiB).count);
  own->leased.store((7_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 100_MiB);
  EXPECT_EQ(others_of(ledger.page(), &other).held, 7_MiB);
  EXPECT_EQ(others_of(ledger.page(), &other).guessed, 7_MiB);
  EXPECT_EQ(others_of(ledger.page(), own).guessed, 0_MiB);
  own->copies_expected.store((2_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), &other).held, 9_MiB);
  EXPECT_EQ(others_of(ledger.page(), own).expected, 2_MiB);
  EXPECT_EQ(others_of(ledger.page(), own).held, 102_MiB) << "its copies do not show in what it holds itself";
  own->copies_expected.store(0);
  own->leased.store(0);
  own->diverged.store((30_MiB).count), other.diverged.store((5_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 135_MiB);
  own->diverged_counted.store((20_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 115_MiB);
  ledger.page().room_for_programs.store((32_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 147_MiB);
  EXPECT_EQ(others_of(ledger.page(), own).expected, 32_MiB) << "they do not hold it yet";
  own->others_guessed.store((9_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).held, 147_MiB) << "it is in what the launcher wrote";
  EXPECT_EQ(others_of(ledger.page(), own).guessed, 9_MiB);
  EXPECT_EQ(others_of(ledger.page(), own).expected, 32_MiB);
  own->others_guessed.store((109_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).guessed, 100_MiB) << "no more than the launcher wrote";
  EXPECT_EQ(others_of(ledger.page(), nullptr).guessed, 0_MiB);
}

TEST_F(LedgerTest, WhatOthersWouldEvictIsOfThoseThatLive) {
  Ledger ledger = make();
  LedgerSlot* own = ledger.claim_slot();
  own->movable.store((9_MiB).count);
  LedgerSlot& other = ledger.page().slots[1];
  other.movable.store((30_MiB).count);
  EXPECT_EQ(others_of(ledger.page(), own).movable, 0_MiB);
  other.pid.store(getppid());
  EXPECT_EQ(others_of(ledger.page(), own).movable, 30_MiB);
  EXPECT_EQ(others_of(ledger.page(), nullptr).movable, 39_MiB);
  EXPECT_EQ(ledger.claim_slot(), own);
  EXPECT_EQ(others_of(ledger.page(), nullptr).movable, 30_MiB) << "another program of the same process has no pool yet";
}

TEST_F(LedgerTest, WhatAParentLeavesToItsChildrenGrowsWithTheOthers) {
  LedgerSlot own;
  own.inherited.store((20_MiB).count);
  own.left_to_children.store((50_MiB).count), own.left_counted.store((45_MiB).count);
  EXPECT_EQ(inherited_from(own), 25_MiB);
  own.unseen_children.store(1);
  EXPECT_EQ(inherited_from(own), 0_MiB);
}

TEST_F(LedgerTest, OfTwoThatLackBytesTheFirstGetsThem) {
  Ledger ledger = make();
  LedgerPage& page = ledger.page();
  LedgerSlot& first = page.slots[0];
  LedgerSlot& second = page.slots[1];
  LedgerSlot& third = page.slots[2];
  for (LedgerSlot* slot : {&first, &second, &third}) slot->pid.store(getppid());
  second.lacking.store((5_MiB).count);
  EXPECT_EQ(others_of(page, &first).held, 5_MiB);
  EXPECT_EQ(others_of(page, &first).expected, 5_MiB) << "not there yet";
  EXPECT_EQ(others_of(page, &second).held, 0_MiB) << "a process gives no way to itself";
  first.lacking.store((7_MiB).count);
  EXPECT_EQ(others_of(page, &first).held, 0_MiB);
  EXPECT_EQ(others_of(page, &second).held, 7_MiB);
  EXPECT_EQ(others_of(page, &third).held, 12_MiB);
  first.ended.store(1);
  EXPECT_EQ(others_of(page, &second).held, 0_MiB);
  EXPECT_EQ(others_of(page, &third).held, 5_MiB);
}

// While it waits, a look that had begun before ends, then another one, and then no room is kept any more.
TEST_F(LedgerTest, ACountWaitsForAWholeLookOfEachOtherAndForRoomThatIsKept) {
  Ledger ledger = make();
  LedgerPage& page = ledger.page();
  LedgerSlot& other = page.slots[0];
  LedgerSlot& own = page.slots[1];
  LedgerSlot& without_a_watch = page.slots[2];
  for (LedgerSlot* slot : {&other, &own, &without_a_watch}) slot->pid.store(getppid());
  for (LedgerSlot* slot : {&other, &own}) {
    slot->looks_begun.store(3);
    slot->looks_ended.store(2);
  }
  page.room_for_programs.store(1);
  std::array<std::uint64_t, 3> asked{1, 1, 1};
  std::thread others([&] {
    const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    wait();
    asked[0] = page.counts_asked.load();
    other.looks_ended.store(3);
    wait();
    asked[1] = page.counts_asked.load();
    other.looks_begun.store(4);
    other.looks_ended.store(4);
    wait();
    asked[2] = page.counts_asked.load();
    page.room_for_programs.store(0);
    while (page.counts_asked.load() == 0) {  // the waiting thread may have begun late
      other.looks_begun.fetch_add(1);
      other.looks_ended.fetch_add(1);
      wait();
    }
    page.counts_made.store(1);
  });
  EXPECT_TRUE(await_count(page, &own, std::chrono::seconds(60)));
  others.join();
  EXPECT_EQ(asked, (std::array<std::uint64_t, 3>{0, 0, 0}));
}

// A process that has died and was not waited for, and one that never looks again.
TEST_F(LedgerTest, ACountDoesNotWaitLongForALookThatNeverComes) {
  Ledger ledger = make();
  LedgerPage& page = ledger.page();
  page.slots[0].pid.store(getppid());
  page.slots[0].looks_begun.store(3);
  page.slots[0].looks_ended.store(3);
  std::thread launcher([&page] {
    while (page.counts_asked.load() == 0) std::this_thread::yield();
    page.counts_made.store(1);
  });
  EXPECT_TRUE(await_count(page, nullptr, std::chrono::milliseconds(300)));
  launcher.join();
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(dead), &info, WEXITED | WNOWAIT), 0);
  page.slots[0].pid.store(dead);
  page.counts_made.store(2);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(await_count(page, nullptr, std::chrono::hours(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes(10));
  waitpid(dead, nullptr, 0);
}

// A loader's worker has no watch. The others see its bytes before they are touched, and count them once.
TEST_F(LedgerTest, WhatAChildIsAboutToTouchCountsUntilItIsThere) {
  Ledger ledger = make(100_MiB);
  LedgerPage& page = ledger.page();
  LedgerSlot& parent = page.slots[0];
  LedgerSlot& child = page.slots[1];
  live(parent), live(child);
  child.others.store((60_MiB).count);
  hold(child, 20_MiB);
  const auto announce = [&](Bytes held, Bytes bytes) {
    make_way(
        page, child, [held] { return held; }, bytes, 8_MiB, Patience{});
    child.coming_until.store(UINT64_MAX >> 1);
  };
  announce(20_MiB, 12_MiB);
  EXPECT_EQ(others_of(page, &parent).held, 12_MiB);
  EXPECT_EQ(others_of(page, &parent).guessed, 12_MiB);
  EXPECT_EQ(others_of(page, &child).held, 60_MiB) << "they are its own";
  announce(20_MiB, 4_MiB);
  EXPECT_EQ(others_of(page, &parent).held, 12_MiB) << "another thread's are fewer";
  announce(20_MiB, 16_MiB);
  EXPECT_EQ(others_of(page, &parent).held, 16_MiB);
  child.rss_seen.store((26_MiB).count), parent.others.store((6_MiB).count);
  EXPECT_EQ(others_of(page, &parent).held, 16_MiB) << "6 MiB are touched";
  announce(26_MiB, 2_MiB);
  EXPECT_EQ(others_of(page, &parent).held, 16_MiB) << "another thread's reaches higher";
  forget_announced(page, &parent);
  EXPECT_EQ(others_of(page, &parent).held, 6_MiB) << "what was counted";
  announce(26_MiB, 2_MiB);
  forget_announced(page, &child);
  EXPECT_EQ(others_of(page, &parent).held, 8_MiB) << "its own stands";
  child.coming_until.store(1);
  EXPECT_EQ(others_of(page, &parent).held, 6_MiB) << "the announcement has ended";
}

// 32 MiB are held, 12 announced, and 8 are the margin. With 48 MiB of others that is the budget.
TEST_F(LedgerTest, AChildWaitsForALookOfItsParentIfThereIsNoRoom) {
  Ledger ledger = make(100_MiB);
  LedgerPage& page = ledger.page();
  LedgerSlot& parent = page.slots[0];
  LedgerSlot& child = page.slots[1];
  live(parent), live(child);
  parent.looks_begun.store(1), parent.looks_ended.store(1);
  child.others.store((48_MiB).count);
  const auto waits = [&](std::chrono::milliseconds most) {
    const auto began = std::chrono::steady_clock::now();
    make_way(page, child, [] { return 32_MiB; }, 12_MiB, 8_MiB, {.looks = most, .all = most});
    return std::chrono::steady_clock::now() - began;
  };
  EXPECT_LT(waits(std::chrono::minutes(2)), std::chrono::minutes(1)) << "there is room";
  child.others.store((48_MiB).count + 1);
  EXPECT_GE(waits(std::chrono::milliseconds(30)), std::chrono::milliseconds(30)) << "nobody looks";
  std::atomic<bool> over{false};
  std::thread watch([&] {
    while (!over) {
      parent.looks_begun.fetch_add(1);
      std::this_thread::yield();
      parent.looks_ended.fetch_add(1);
    }
  });
  EXPECT_LT(waits(std::chrono::minutes(2)), std::chrono::minutes(1));
  over = true;
  watch.join();
  parent.looks_begun.store(1000), parent.looks_ended.store(1000);
  std::thread program([&parent] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    parent.looks_begun.store(0), parent.looks_ended.store(0);
  });
  EXPECT_LT(waits(std::chrono::minutes(2)), std::chrono::minutes(1)) << "it runs another program, and never looks";
  program.join();
  page.budget.store(0);
  EXPECT_LT(waits(std::chrono::minutes(2)), std::chrono::minutes(1)) << "no budget, no waiting";
}

// Two processes hold 30 MiB each, and each wants 40 more. There is room for one of them.
TEST_F(LedgerTest, ProcessesThatTakeLargeBlocksWithoutRoomTakeTurns) {
  Ledger ledger = make(100_MiB);
  LedgerPage& page = ledger.page();
  LedgerSlot& first = page.slots[0];
  LedgerSlot& second = page.slots[1];
  for (LedgerSlot* slot : {&first, &second}) {
    live(*slot);
    slot->others.store((30_MiB).count);
    hold(*slot, 30_MiB);
  }
  using std::chrono::milliseconds, std::chrono::minutes;
  const auto waits = [&](LedgerSlot& slot, Bytes bytes, milliseconds most) {
    const auto began = std::chrono::steady_clock::now();
    make_way(page, slot, [&slot] { return Bytes{slot.rss.load()}; }, bytes, 0_MiB, {.all = most});
    return std::chrono::steady_clock::now() - began;
  };
  const auto touch = [](LedgerSlot& slot, LedgerSlot& other, Bytes bytes) {
    hold(slot, Bytes{slot.rss.load()} + bytes);
    other.others.fetch_add(bytes.count);
  };
  const auto give_turn_for_ever = [&page](const LedgerSlot& slot) {
    const auto number = static_cast<std::uint64_t>(&slot - page.slots.data());
    page.turn.store((UINT64_MAX >> 6) * LedgerPage::kSlots + number);
  };
  const auto forget = [&] { first.coming_to.store(0), second.coming_to.store(0); };
  EXPECT_LT(waits(first, 35_MiB, minutes(2)), minutes(1)) << "there is room";
  EXPECT_EQ(page.turn.load() % LedgerPage::kSlots, 0u);
  EXPECT_GT(page.turn.load(), 0u) << "there is none for another such block";
  EXPECT_EQ(others_have_a_turn(page, &first), false) << "its own";
  touch(first, second, 35_MiB);
  give_turn_for_ever(first);
  EXPECT_GE(waits(second, 40_MiB, milliseconds(30)), milliseconds(30)) << "no room, and the other one has the turn";
  forget();
  EXPECT_LT(waits(first, 40_MiB, minutes(2)), minutes(1)) << "who has the turn does not wait";
  forget();
  give_turn_for_ever(second);
  EXPECT_GE(waits(first, 40_MiB, milliseconds(30)), milliseconds(30));
  forget();
  give_turn_for_ever(first);
  EXPECT_LT(waits(second, 31_MiB, minutes(2)), minutes(1)) << "the heap may have the pages already";
  forget();
  std::thread gives_back([&] {
    std::this_thread::sleep_for(milliseconds(20));
    second.others.fetch_sub((35_MiB).count);
  });
  EXPECT_LT(waits(second, 40_MiB, minutes(2)), minutes(1)) << "the other one gave back what it had taken";
  gives_back.join();
  forget();
  second.others.fetch_add((35_MiB).count);
  page.turn.store(1 * LedgerPage::kSlots);
  EXPECT_LT(waits(second, 40_MiB, minutes(2)), minutes(1)) << "the other one's turn has ended";
  give_turn_for_ever(second);
  end_turn(page, first);
  EXPECT_TRUE(others_have_a_turn(page, &first));
  EXPECT_FALSE(others_have_a_turn(page, &second)) << "its own";
  end_turn(page, second);
  EXPECT_EQ(page.turn.load(), 0u);
  page.budget.store((1_GiB).count);
  forget();
  EXPECT_LT(waits(second, 40_MiB, minutes(2)), minutes(1));
  EXPECT_EQ(page.turn.load(), 0u) << "with room for more of them, nobody needs to wait";
}

TEST_F(LedgerTest, WhatIsExpectedOrGuessedDoesNotPassABudget) {
  Ledger ledger = make(100_MiB);
  LedgerPage& page = ledger.page();
  LedgerSlot& own = page.slots[0];
  LedgerSlot& other = page.slots[1];
  live(own), live(other);
  own.others.store((40_MiB).count);
  EXPECT_FALSE(passes_budget(page, own, 60_MiB));
  EXPECT_TRUE(passes_budget(page, own, 60_MiB + 1_B));
  other.copies_expected.store((10_MiB).count);
  other.leased.store((10_MiB).count);
  EXPECT_FALSE(passes_budget(page, own, 60_MiB));
  other.rss.store(1);
  EXPECT_TRUE(passes_budget(page, own, 60_MiB)) << "it grew since the count";
  other.copying.store(1);
  EXPECT_FALSE(passes_budget(page, own, 60_MiB)) << "an op is copying, and may not have done so yet";
  page.budget.store(0);
  EXPECT_FALSE(passes_budget(page, own, 61_MiB));
}

TEST_F(LedgerTest, WhoAsksForACountWaitsUntilItIsMade) {
  Ledger ledger = make();
  LedgerPage& page = ledger.page();
  EXPECT_FALSE(await_count(page, nullptr, std::chrono::milliseconds(5)));
  std::thread launcher([&page] {
    while (page.counts_asked.load() < 2) std::this_thread::yield();
    page.counts_made.store(2);
  });
  EXPECT_TRUE(await_count(page, nullptr, std::chrono::seconds(60)));
  launcher.join();
  EXPECT_EQ(page.counts_asked.load(), 2u);
}

TEST(SharedText, CutsWhatIsTooLong) {
  SharedText<4> text;
  text.set("abcdef");
  EXPECT_EQ(text.get(), "abcd");
  text.set("x");
  EXPECT_EQ(text.get(), "x");
  text.length.store(400);  // a damaged length
  EXPECT_EQ(text.get().size(), 4u);
}

}  // namespace
}  // namespace ullage::store
