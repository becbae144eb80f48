// SPDX-License-Identifier: Apache-2.0
// The spill file when processes fork or are killed.
#include "spill_test.h"
#include "ullage/store/process_memory.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace ullage::store {
namespace {

// Lets a process wait for another one, by a byte in a pipe. Gives up after a minute, in case the other one died.
class Signal final {
 public:
  Signal() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() { ::close(ends_[0]), ::close(ends_[1]); }
  void send() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }
  bool wait() {
    pollfd ready = {ends_[0], POLLIN, 0};
    char got = 0;
    return poll(&ready, 1, 60000) == 1 && ::read(ends_[0], &got, 1) == 1;
  }

 private:
  int ends_[2] = {-1, -1};
};

int exit_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class SpillOnTheSystem : public SpillTest {
 protected:
  // Forks as the pool does through pthread_atfork. The child runs `work` and exits with 0 if that returns true.
  static pid_t forked(SpillFile& file, const std::function<bool()>& work) {
    file.before_fork();
    const pid_t child = fork();
    if (child != 0) {
      file.after_fork_in_parent();
      return child;
    }
    alarm(60);  // the signal ends a child that waits forever
    file.after_fork_in_child();
    _exit(work() ? 0 : 1);
  }

  SpillSlot written(SpillFile& file, Bytes size, std::uint64_t who) {
    TestPages pages(size);
    pages.stamp(who);
    const SpillSlot slot = take(file, size);
    EXPECT_TRUE(file.write(slot, pages.address()).ok());
    return slot;
  }
  static bool holds(SpillFile& file, const SpillSlot& slot, std::uint64_t who) {
    TestPages pages(slot.size);
    return file.read(slot, pages.address()).ok() && pages.is_stamped(who, slot.size);
  }
};

TEST_F(SpillOnTheSystem, KilledProcessLeavesNoFile) {
  for (const bool unnamed : {true, false}) {
    Signal spilled;
    const pid_t child = fork();
    if (child == 0) {
      SpillFile::Options options;
      if (!unnamed) options.calls.open_unnamed = [](const char*) { return errno = EOPNOTSUPP, -1; };
      auto file = open(8_MiB, options);
      written(*file, 4_MiB, 1);
      spilled.send();
      for (;;) pause();
    }
    ASSERT_TRUE(spilled.wait());
    ASSERT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(exit_of(child), 128 + SIGKILL);
    EXPECT_TRUE(folder_is_empty());
  }
}

// A direct write pins its pages, and the kernel would copy each pinned page that is shared with a child.
TEST_F(SpillOnTheSystem, WritesPagesSharedWithAForkWithoutCopiesOfThem) {
  constexpr Bytes kSize = 32_MiB;
  for (const bool checksums : {false, true}) {
    SpillFile::Options options;
    options.checksums = checksums;
    auto file = open(kSize * 2, options);
    TestPages pages(kSize);
    pages.stamp(7);
    Signal may_end;
    const pid_t child = forked(*file, [&] { return may_end.wait(); });
    const SpillSlot slot = take(*file, kSize);
    const Bytes before = proportional_of(getpid());
    ASSERT_TRUE(file->write(slot, pages.address(), SpillFile::Sharing::WithAFork).ok());
    const Bytes grown = saturating_sub(proportional_of(getpid()), before);
    EXPECT_LT(grown, 4_MiB) << "checksums " << checksums;  // half of the pages would be 16 MiB
    may_end.send();
    EXPECT_EQ(exit_of(child), 0);
    EXPECT_TRUE(holds(*file, slot, 7));
  }
}

TEST_F(SpillOnTheSystem, SlotsAreNotReusedBeforeTheChildEnds) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 4_MiB, 1);
  Signal overwritten;
  const pid_t child = forked(*file, [&] { return overwritten.wait() && holds(*file, slot, 1); });
  file->give(slot);
  EXPECT_EQ(file->counts().held_for_children, 4_MiB);
  const SpillSlot other = written(*file, 4_MiB, 2);
  EXPECT_NE(other.offset, slot.offset);
  const Result<SpillSlot> none = file->take(4_MiB);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("and 4.00 MiB held for forked children"), std::string::npos)
      << none.error().message;
  overwritten.send();
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_EQ(take(*file, 4_MiB).offset, slot.offset);
  EXPECT_EQ(file->counts().held_for_children, 0_B);
}

TEST_F(SpillOnTheSystem, SlotsAreNotReusedBeforeAGrandchildEnds) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 4_MiB, 1);
  Signal overwritten, done;
  const pid_t child = forked(*file, [&] {
    // The grandchild outlives its parent, so it reports by itself what it saw.
    return forked(*file, [&] {
             if (!overwritten.wait() || !holds(*file, slot, 1)) return false;
             return done.send(), true;
           }) > 0;
  });
  EXPECT_EQ(exit_of(child), 0);
  file->give(slot);
  written(*file, 4_MiB, 2);
  EXPECT_FALSE(file->take(4_MiB).ok());
  EXPECT_EQ(file->counts().held_for_children, 4_MiB);
  overwritten.send();
  ASSERT_TRUE(done.wait());
  Result<SpillSlot> again = file->take(4_MiB);
  for (int i = 0; i < 2000 && !again.ok(); ++i) usleep(5000), again = file->take(4_MiB);  // until it has exited
  EXPECT_TRUE(again.ok());
}

TEST_F(SpillOnTheSystem, SlotsAreNotReusedBeforeAChildEndsThatForkedItself) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 4_MiB, 1);
  Signal has_forked, overwritten;
  const pid_t child = forked(*file, [&] {
    if (exit_of(forked(*file, [&] { return holds(*file, slot, 1); })) != 0) return false;
    has_forked.send();
    return overwritten.wait() && holds(*file, slot, 1);
  });
  ASSERT_TRUE(has_forked.wait());
  file->give(slot);
  EXPECT_EQ(file->counts().held_for_children, 4_MiB);
  written(*file, 4_MiB, 2);
  EXPECT_FALSE(file->take(4_MiB).ok());
  overwritten.send();
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_TRUE(file->take(4_MiB).ok());
}

TEST_F(SpillOnTheSystem, AChildThatCallsExecHoldsNothing) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 4_MiB, 1);
  Signal input;
  const pid_t child = forked(*file, [] { return execlp("sleep", "sleep", "60", nullptr), false; });
  file->give(slot);
  Result<SpillSlot> again = file->take(8_MiB);
  for (int i = 0; i < 2000 && !again.ok(); ++i) usleep(5000), again = file->take(8_MiB);  // until it has called exec
  EXPECT_TRUE(again.ok());
  kill(child, SIGKILL);
  exit_of(child);
}

TEST_F(SpillOnTheSystem, ForksMayOverlap) {
  auto file = open(12_MiB);
  const SpillSlot first_slot = written(*file, 4_MiB, 1);
  Signal first_ends, second_ends;
  const pid_t first = forked(*file, [&] { return first_ends.wait() && holds(*file, first_slot, 1); });
  file->give(first_slot);
  const SpillSlot second_slot = written(*file, 4_MiB, 2);
  const pid_t second = forked(*file, [&] { return second_ends.wait() && holds(*file, second_slot, 2); });
  file->give(second_slot);
  EXPECT_EQ(file->counts().held_for_children, 8_MiB);
  first_ends.send();
  EXPECT_EQ(exit_of(first), 0);
  EXPECT_EQ(written(*file, 4_MiB, 3).offset, first_slot.offset) << "the second child never saw it in use";
  EXPECT_EQ(file->counts().held_for_children, 4_MiB);
  second_ends.send();
  EXPECT_EQ(exit_of(second), 0);
  take(*file, 4_MiB);
  take(*file, 4_MiB);
  EXPECT_EQ(file->counts().held_for_children, 0_B);
}

TEST_F(SpillOnTheSystem, AChildReadsAndDoesNotSpill) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 2_MiB, 1);
  const SpillSlot freed = written(*file, 2_MiB, 2);
  const pid_t child = forked(*file, [&] {
    TestPages pages(2_MiB);
    const bool taken = file->take(4_KiB).ok();
    const bool wrote = file->write(slot, pages.address()).ok();
    file->give(freed);  // has no effect on the parent
    return !taken && !wrote && holds(*file, slot, 1);
  });
  EXPECT_EQ(exit_of(child), 0);
  EXPECT_TRUE(holds(*file, slot, 1));
  EXPECT_TRUE(holds(*file, freed, 2));
  EXPECT_EQ(file->take(4_KiB).ok(), true);
}

// A write beyond this limit (RLIMIT_FSIZE) would end the process by a signal.
TEST_F(SpillOnTheSystem, StaysWithinTheLimitOnTheLengthOfFiles) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = (4_MiB).count;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const Result<SpillPlace> place = find_spill_place(folder_), stated = find_spill_place(folder_ + ":5MiB");
  auto file = open(8_MiB);
  const Result<SpillSlot> none = file->take(5_MiB), some = file->take(4_MiB);
  TestPages pages(4_MiB);
  const bool wrote = some.ok() && file->write(*some, pages.address()).ok();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(place->most, 4_MiB);
  EXPECT_EQ(stated.error().message,
            "files there may have at most 4.00 MiB (4194304 bytes), less than the 5.00 MiB (5242880 bytes) "
            "stated; raise 'ulimit -f' or state less");
  EXPECT_EQ(
      none.error().message,
      "no room for 5.00 MiB (5242880 bytes) in one piece within the limit on the length of files; raise 'ulimit -f'");
  EXPECT_TRUE(wrote);
}

// Without descriptors no pipe can be made to notice a child's end. Then slots are never reused, rather than too early.
TEST_F(SpillOnTheSystem, WithoutDescriptorsSlotsAreHeldForGood) {
  auto file = open(8_MiB);
  const SpillSlot slot = written(*file, 4_MiB, 1);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const pid_t child = forked(*file, [&] { return true; });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(exit_of(child), 0);
  file->give(slot);
  EXPECT_NE(take(*file, 4_MiB).offset, slot.offset);
  EXPECT_EQ(file->counts().held_for_children, 4_MiB);
}

TEST_F(SpillOnTheSystem, ForksWhileOtherThreadsSpill) {
  auto file = open(64_MiB);
  const SpillSlot kept = written(*file, 1_MiB, 1);
  std::atomic<bool> stop{false};
  std::atomic<bool> right{true};
  std::vector<std::thread> busy;
  for (std::uint64_t t = 0; t < 2; ++t) {
    busy.emplace_back([&, t] {
      for (std::uint64_t i = 2; !stop; ++i) {
        const SpillSlot slot = written(*file, 1_MiB * (1 + i % 3), i * 2 + t);
        if (!holds(*file, slot, i * 2 + t)) right = false;
        file->give(slot);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = forked(*file, [&] { return holds(*file, kept, 1); });
    EXPECT_EQ(exit_of(child), 0);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_TRUE(right);
  EXPECT_TRUE(holds(*file, kept, 1));
  take(*file, 63_MiB);
}

}  // namespace
}  // namespace ullage::store
