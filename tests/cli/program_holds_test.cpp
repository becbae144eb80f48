// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/program_holds.h"

#include "ullage/store/budget.h"

#include "forked_child.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>

namespace ullage::cli {
namespace {

using namespace std::chrono_literals;

// Returns whether the kernel tells this process, the child's parent, of such a change within ten seconds.
bool is_told(pid_t pid, int options, bool (*is_it)(int)) {
  for (int waits = 0; waits < 2000; ++waits) {
    int status = 0;
    if (waitpid(pid, &status, options | WNOHANG) == pid) return is_it(status);
    std::this_thread::sleep_for(5ms);
  }
  return false;
}
bool stops(pid_t pid) {
  return is_told(pid, WUNTRACED, [](int status) { return WIFSTOPPED(status); });
}
bool goes_on(pid_t pid) {
  return is_told(pid, WCONTINUED, [](int status) { return WIFCONTINUED(status); });
}
// Neither stopped nor continued since it was asked last. It takes a moment until a child stops.
bool is_left_alone(pid_t pid) {
  std::this_thread::sleep_for(20ms);
  int status = 0;
  return waitpid(pid, &status, WUNTRACED | WCONTINUED | WNOHANG) == 0;
}

// A budget of 1 GiB, and a pool that holds a part of it.
struct ProgramHoldsTest : testing::Test {
  void SetUp() override {
    page->budget.store((1_GiB).count);
    page->slots[0].pid.store(getpid());
    page->slots[0].pool_resident.store((500_MiB).count);
  }
  void look(Bytes resident, Bytes held, std::chrono::milliseconds after = 10ms) {
    holds->look({{child.pid(), resident}}, held, now += after);
  }
  // Looks at a program that takes what is left of the budget, so that it is stopped.
  void stop() {
    look(20_MiB, kFull);
    ASSERT_TRUE(stops(child.pid()));
  }

  static constexpr Bytes kFull = 1_GiB - store::Budget::kMargin;
  ForkedChild child{[] {}};
  std::unique_ptr<store::LedgerPage> page = std::make_unique<store::LedgerPage>();
  ProgramHolds::Clock::time_point now = ProgramHolds::Clock::now();
  std::optional<ProgramHolds> holds{*page};
};

TEST_F(ProgramHoldsTest, StopsAProgramThatWouldPassTheBudgetUntilThereIsRoom) {
  stop();
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom) << "the pools make room";
  look(20_MiB, kFull - ProgramHolds::kLeastRoom + 1_MiB);
  EXPECT_TRUE(is_left_alone(child.pid()));
  look(20_MiB, kFull - ProgramHolds::kLeastRoom);
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_EQ(page->programs_held_us.load(), 20'000u);
}

TEST_F(ProgramHoldsTest, KeepsTheRoomUntilTheProgramHasTakenIt) {
  stop();
  look(20_MiB, kFull - ProgramHolds::kRoom - 100_MiB);
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom) << "no more than was asked for";
  look(30_MiB, kFull - 100_MiB);
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom - 10_MiB);
  look(30_MiB, kFull - 100_MiB, ProgramHolds::kKept - 1ms);
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom - 10_MiB);
  look(30_MiB, kFull - 100_MiB, 1ms);
  EXPECT_EQ(page->room_for_programs.load(), 0u) << "it does not grow";
  EXPECT_TRUE(is_left_alone(child.pid()));
}

TEST_F(ProgramHoldsTest, TellsHowManyProgramsGrow) {
  stop();
  EXPECT_EQ(page->programs_grow.load(), 1u) << "it would if there were room";
  look(20_MiB, 100_MiB);
  look(21_MiB, 100_MiB);
  look(21_MiB, 100_MiB, ProgramHolds::kKept - 1ms);
  EXPECT_EQ(page->programs_grow.load(), 1u);
  look(21_MiB, 100_MiB, 1ms);
  EXPECT_EQ(page->programs_grow.load(), 0u);
}

TEST_F(ProgramHoldsTest, LetsItGoOnIfNoRoomIsMade) {
  stop();
  look(20_MiB, kFull, ProgramHolds::kLongest - 1ms);
  EXPECT_TRUE(is_left_alone(child.pid()));
  look(20_MiB, kFull, 1ms);
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_EQ(page->room_for_programs.load(), 0u);
  look(22_MiB, kFull);
  EXPECT_TRUE(is_left_alone(child.pid())) << "it was held in vain";
  const ForkedChild second([] {});
  holds->look({{child.pid(), 22_MiB}, {second.pid(), ProgramHolds::kSmall - 1_B}}, kFull, now);
  holds->look({{child.pid(), 22_MiB}, {second.pid(), ProgramHolds::kSmall + 1_MiB}}, kFull, now);
  EXPECT_TRUE(is_left_alone(second.pid())) << "the next one would be too";
  look(22_MiB, kFull - ProgramHolds::kLeastRoom);
  look(60_MiB, kFull);
  EXPECT_TRUE(stops(child.pid())) << "there was room since";
}

TEST_F(ProgramHoldsTest, StopsNothingThatFitsOrIsSmallOrDoesNotGrow) {
  look(20_MiB, kFull - 40_MiB);
  look(20_MiB + ProgramHolds::kStep - 1_B, kFull + 1_MiB);
  EXPECT_TRUE(is_left_alone(child.pid())) << "it has not grown by a step";
  look(30_MiB, kFull - 20_MiB);
  EXPECT_TRUE(is_left_alone(child.pid())) << "twice its growth fits";
  look(40_MiB, kFull - 20_MiB + 1_B);
  EXPECT_TRUE(stops(child.pid()));
  const ForkedChild small([] {});
  holds->look({{small.pid(), ProgramHolds::kSmall - 1_B}}, kFull, now);
  EXPECT_TRUE(is_left_alone(small.pid()));
}

TEST_F(ProgramHoldsTest, StopsNothingWhereNoPoolCouldMakeRoom) {
  page->slots[0].pool_resident.store(ProgramHolds::kLeastRoom.count - 1);
  look(20_MiB, kFull - 100_MiB);
  look(22_MiB, kFull);
  EXPECT_TRUE(is_left_alone(child.pid()));
  page->slots[1].pid.store(getppid());
  page->slots[1].pool_resident.store(1);
  page->budget.store(0);
  look(40_MiB, kFull);
  EXPECT_TRUE(is_left_alone(child.pid())) << "there is no budget";
  page->budget.store((1_GiB).count);
  look(60_MiB, kFull);
  EXPECT_TRUE(stops(child.pid()));
  page->slots[1].ended.store(1);
  look(60_MiB, kFull);
  EXPECT_TRUE(goes_on(child.pid())) << "the pool has ended";
}

// The margin is 8 MiB.
TEST_F(ProgramHoldsTest, StopsAtTheEdgeWhatNoPoolCanHelp) {
  page->slots[0].pool_resident.store(0);
  look(20_MiB, 1_GiB - 40_MiB);
  look(30_MiB, 1_GiB - 20_MiB);
  EXPECT_TRUE(is_left_alone(child.pid())) << "twice its growth is there";
  look(40_MiB, 1_GiB - 20_MiB + 1_B);
  EXPECT_TRUE(stops(child.pid()));
  look(40_MiB, 1_GiB - ProgramHolds::kEdge);
  EXPECT_TRUE(goes_on(child.pid()));
  look(41_MiB, 1_GiB - ProgramHolds::kEdge + 1_B);
  EXPECT_TRUE(stops(child.pid()));
  EXPECT_EQ(page->programs_grow.load(), 0u) << "a request that waited for it would wait in vain";
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom);
}

TEST_F(ProgramHoldsTest, SaysThatTheBudgetIsTooSmallIfNoRoomComesAtTheEdge) {
  page->slots[0].pool_resident.store(0);
  const Bytes held = 1_GiB - 1_MiB;
  look(40_MiB, held);
  EXPECT_TRUE(stops(child.pid()));
  const auto look_for = [&](std::chrono::milliseconds all) {
    for (auto waited = 0ms; waited < all; waited += 500ms) look(40_MiB, held, 500ms);
  };
  look_for(ProgramHolds::kLongestTurn / 2);
  look(40_MiB, held, ProgramHolds::kGap);
  look_for(ProgramHolds::kLongestTurn - 500ms);
  EXPECT_FALSE(holds->too_little()) << "for a second nobody looked";
  page->largest_program.store((100_MiB).count);
  look_for(500ms);
  EXPECT_TRUE(is_left_alone(child.pid()));
  ASSERT_TRUE(holds->too_little());
  EXPECT_EQ(holds->too_little()->pid, child.pid());
  EXPECT_EQ(holds->too_little()->held, held);
  EXPECT_EQ(holds->too_little()->needed, held + 60_MiB + store::Budget::kMargin) << "as much as the largest so far";
}

TEST_F(ProgramHoldsTest, OnlyWatchesATreeWithoutAPool) {
  page->slots[0].ended.store(1);
  look(40_MiB, 1_GiB);
  look(80_MiB, 1_GiB + 40_MiB);
  EXPECT_TRUE(is_left_alone(child.pid()));
}

TEST_F(ProgramHoldsTest, LetsAllGoOnAtItsEndAndThoseThatAreNoSuchProgramsAnyMore) {
  stop();
  holds->look({}, kFull, now);
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_EQ(page->room_for_programs.load(), 0u);
  stop();
  holds.reset();
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_EQ(page->room_for_programs.load(), 0u);
}

TEST_F(ProgramHoldsTest, MakesRoomForSeveralOneAfterTheOther) {
  const ForkedChild second([] {});
  const auto look_at_both = [&](Bytes held) {
    holds->look({{child.pid(), 20_MiB}, {second.pid(), 20_MiB}}, held, now += 10ms);
  };
  look_at_both(kFull);
  EXPECT_TRUE(stops(child.pid()));
  EXPECT_TRUE(stops(second.pid()));
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom) << "they go on one after the other";
  look_at_both(kFull - ProgramHolds::kRoom);
  EXPECT_TRUE(goes_on(child.pid()));
  EXPECT_TRUE(is_left_alone(second.pid())) << "the room is the first one's";
}

// Two compilers that take 250 MiB each. The pool can give 100 MiB.
struct ProgramTurns : ProgramHoldsTest {
  void SetUp() override {
    ProgramHoldsTest::SetUp();
    page->largest_program.store((250_MiB).count);
    page->slots[0].movable.store((100_MiB).count);
  }
  void look_at_both(Bytes first, Bytes next, Bytes held, std::chrono::milliseconds after = 10ms) {
    holds->look({{child.pid(), first}, {second.pid(), next}}, held, now += after);
  }
  // Looks so that the second one waits for its turn. After it the first has 32 MiB.
  void stop_second() {
    look_at_both(20_MiB, 10_MiB, kFull - 300_MiB);
    look_at_both(32_MiB, 20_MiB, kFull - 60_MiB);
    ASSERT_TRUE(stops(second.pid()));
    ASSERT_TRUE(is_left_alone(child.pid()));
  }
  const ForkedChild second{[] {}};
};

TEST_F(ProgramTurns, AreTakenIfPoolsCannotGiveEnoughForAll) {
  const Bytes both_fit = kFull + 100_MiB - (250_MiB + 250_MiB - 20_MiB - 10_MiB);
  look_at_both(20_MiB, 10_MiB, both_fit);
  EXPECT_TRUE(is_left_alone(second.pid())) << "with what the pools can give there is room for both";
  look_at_both(30_MiB, 20_MiB, both_fit + 20_MiB + 1_B);
  EXPECT_TRUE(stops(second.pid()));
  EXPECT_TRUE(is_left_alone(child.pid())) << "the older one has its turn";
  EXPECT_EQ(page->room_for_programs.load(), 0u) << "no room of the pools would let the other one go on";
}

TEST_F(ProgramTurns, ComeWhenTheOlderOneDoesNotGrow) {
  stop_second();
  look_at_both(34_MiB, 20_MiB, kFull - 60_MiB, ProgramHolds::kLongest + 1s);
  EXPECT_TRUE(is_left_alone(second.pid())) << "longer than for room";
  look_at_both(34_MiB, 20_MiB, kFull - 60_MiB, ProgramHolds::kKept);
  EXPECT_TRUE(goes_on(second.pid()));
}

TEST_F(ProgramTurns, ComeWhenTheOlderOneEnds) {
  stop_second();
  holds->look({{second.pid(), 20_MiB}}, kFull - 60_MiB, now += 10ms);
  EXPECT_TRUE(goes_on(second.pid()));
}

TEST_F(ProgramTurns, BeginWithWaitingForRoom) {
  stop_second();
  look_at_both(34_MiB, 20_MiB, kFull, ProgramHolds::kLongest + 1s);
  EXPECT_TRUE(stops(child.pid()));
  EXPECT_TRUE(is_left_alone(second.pid())) << "the older one would grow if there were room";
  holds->look({{second.pid(), 20_MiB}}, kFull, now += 10ms);
  EXPECT_TRUE(is_left_alone(second.pid()));
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom);
  holds->look({{second.pid(), 20_MiB}}, kFull, now += ProgramHolds::kLongest);
  EXPECT_TRUE(goes_on(second.pid())) << "held in vain";
}

// The older one grows without end, and may need the younger one.
TEST_F(ProgramTurns, AreNotNeededAnyMoreAfterALongWait) {
  stop_second();
  Bytes first = 34_MiB;
  for (auto waited = 0ms; waited < ProgramHolds::kLongestTurn; waited += 400ms, first += 2_MiB) {
    ASSERT_TRUE(is_left_alone(second.pid()));
    look_at_both(first, 20_MiB, kFull - 60_MiB, 400ms);
  }
  EXPECT_TRUE(goes_on(second.pid()));
  look_at_both(first, 30_MiB, kFull - 60_MiB);
  EXPECT_TRUE(is_left_alone(second.pid()));
  look_at_both(first + 2_MiB, 40_MiB, kFull);
  EXPECT_TRUE(stops(second.pid())) << "it still waits for room";
}

TEST_F(ProgramTurns, AreNotTakenFromSmallPrograms) {
  look_at_both(ProgramHolds::kSmall - 1_B, 20_MiB, kFull - 300_MiB);
  EXPECT_TRUE(is_left_alone(second.pid())) << "a shell that starts a compiler";
}

TEST_F(ProgramHoldsTest, CountsWhatAllProgramsMayTakeBeforeTheNextLook) {
  const ForkedChild second([] {});
  holds->look({{child.pid(), 20_MiB}, {second.pid(), 20_MiB}}, kFull - 80_MiB, now);
  EXPECT_TRUE(is_left_alone(child.pid()));
  holds->look({{child.pid(), 25_MiB}, {second.pid(), 25_MiB}}, kFull - 20_MiB + 1_B, now);
  EXPECT_TRUE(stops(child.pid()));
}

TEST_F(ProgramHoldsTest, KeepsNoRoomWhileARequestIsAboutToBeRefused) {
  page->slots[0].lacking.store(1);
  stop();
  EXPECT_EQ(page->room_for_programs.load(), 0u);
  page->slots[0].lacking.store(0);
  look(20_MiB, kFull);
  EXPECT_EQ(Bytes{page->room_for_programs.load()}, ProgramHolds::kRoom);
}

TEST_F(ProgramHoldsTest, LetsOverdueOnesGoOnThoughNobodyKnowsWhatIsHeld) {
  stop();
  holds->let_overdue_go_on(now + ProgramHolds::kLongest - 1ms);
  EXPECT_TRUE(is_left_alone(child.pid()));
  holds->let_overdue_go_on(now + ProgramHolds::kLongest);
  EXPECT_TRUE(goes_on(child.pid()));
}

// Its parent, such as a shell with job control, may watch whether it stops.
TEST_F(ProgramHoldsTest, StopsNoProgramWithAProcessGroupOfItsOwn) {
  ASSERT_EQ(setpgid(child.pid(), 0), 0);
  look(20_MiB, kFull);
  EXPECT_TRUE(is_left_alone(child.pid()));
  EXPECT_EQ(page->room_for_programs.load(), 0u);
}

}  // namespace
}  // namespace ullage::cli
