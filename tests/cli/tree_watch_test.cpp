// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/tree_watch.h"

#include "ullage/store/process_memory.h"

#include "folders.h"
#include "forked_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ullage::cli {
namespace {

constexpr Bytes kHeld = 64_MiB;

// Makes `bytes` resident until the process ends. Uses mmap, because a sanitizer's allocator takes more for each block.
void hold(Bytes bytes) {
  void* at = mmap(nullptr, bytes.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
}

ForkedChild child_with(Bytes held) {
  return ForkedChild([held] { hold(held); });
}

// A child of a child. It does its work when it is told to, so that the tree can be counted before.
class Grandchild final {
 public:
  explicit Grandchild(const std::function<void()>& work) {
    EXPECT_EQ(pipe(go_) | pipe(done_), 0);
    child_.emplace([&] {
      if (fork() != 0) return;
      char word = 0;
      if (read(go_[0], &word, 1) != 1) _exit(1);
      work();
      if (write(done_[1], "", 1) != 1) _exit(1);
      for (;;) pause();
    });
    const std::vector<std::int32_t> pids = store::process_tree(child_->pid());
    if (pids.size() == 2) pid_ = pids[1];
  }
  ~Grandchild() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    for (const int end : {go_[0], go_[1], done_[0], done_[1]}) close(end);
  }
  Grandchild(const Grandchild&) = delete;
  Grandchild& operator=(const Grandchild&) = delete;

  pid_t pid() const { return pid_; }  // 0: it could not be made
  // Has it work, and waits until it has. Returns whether it did.
  bool works() {
    char word = 0;
    return write(go_[1], "", 1) == 1 && read(done_[0], &word, 1) == 1;
  }

 private:
  int go_[2] = {-1, -1}, done_[2] = {-1, -1};
  std::optional<ForkedChild> child_;
  pid_t pid_ = 0;
};

// dd takes kHeld at once.
void start_dd(pid_t& program) {
  static_assert(kHeld == 64_MiB);
  char* words[] = {const_cast<char*>("dd"), const_cast<char*>("if=/dev/zero"), const_cast<char*>("of=/dev/null"),
                   const_cast<char*>("bs=64M"), nullptr};
  ASSERT_EQ(posix_spawnp(&program, "dd", nullptr, nullptr, words, environ), 0);
}

// Returns whether the kernel tells of such a change of the child within ten seconds. An ended one is not reaped.
bool is_told_of(pid_t child, int change) {
  for (int waits = 0; waits < 2000; ++waits) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(child), &info, change | WNOHANG | WNOWAIT) == 0 && info.si_pid == child) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::optional<std::vector<TreeMember>> counted_tree(store::LedgerPage& page, std::int32_t root) {
  std::optional<std::vector<TreeMember>> tree = count_tree(page, root);
  if (tree) note_count(page, *tree);
  return tree;
}

struct TreeWatchTest : testing::Test {
  void SetUp() override { own.pid.store(getpid()); }
  std::unique_ptr<store::LedgerPage> page = std::make_unique<store::LedgerPage>();
  store::LedgerSlot& own = page->slots[0];
  const Bytes beside = store::resident_now() + 4_MiB;  // the most that a process holds besides
};

TEST_F(TreeWatchTest, HasNothingToTellOfAProcessThatIsAlone) {
  own.others.store(7);  // left from an earlier count
  own.diverged.store(5);
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 1u);
  EXPECT_EQ(own.others.load(), 0u);
  EXPECT_EQ(own.diverged_counted.load(), 5u) << "those who had it have ended";
  EXPECT_EQ(page->tree_peak.load(), 0u);
}

TEST_F(TreeWatchTest, WhatOpsWereStillCopyingCountsInAdditionToTheCount) {
  own.diverged.store(50), own.copying.store(20);
  counted_tree(*page, getpid());
  EXPECT_EQ(own.diverged_counted.load(), 30u);
  EXPECT_EQ(store::others_of(*page, &own).held, Bytes{20});
  own.copying.store(0);
  counted_tree(*page, getpid());
  EXPECT_EQ(store::others_of(*page, &own).held, Bytes{});
}

TEST_F(TreeWatchTest, TellsEachProcessWhatTheOthersHold) {
  hold(kHeld * 2);  // before the fork, so the child shares it
  const ForkedChild child = child_with(kHeld);
  store::LedgerSlot& slot = page->slots[3];
  slot.pid.store(child.pid()), slot.rss.store(12345);
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 2u);
  EXPECT_GE(Bytes{own.others.load()}, kHeld / 2);
  EXPECT_LE(Bytes{own.others.load()}, kHeld + beside);
  EXPECT_LE(Bytes{slot.others.load()}, beside);  // what it shares is part of its own count
  EXPECT_EQ(slot.rss_counted.load(), 12345u);
  EXPECT_GE(Bytes{page->tree_peak.load()}, kHeld * 3);
  EXPECT_LE(Bytes{page->tree_peak.load()}, kHeld * 3 + beside);
}

TEST_F(TreeWatchTest, TellsWhatAChildHoldsOnlyBecauseItsParentHadIt) {
  const auto inherited = [&] {
    counted_tree(*page, getpid());
    return Bytes{own.inherited.load()};
  };
  own.left_to_children.store((9_MiB).count), own.generation.store(4);
  EXPECT_EQ(inherited(), 0_B) << "it has no child";
  EXPECT_EQ(Bytes{own.left_counted.load()}, 9_MiB);
  const ForkedChild child = child_with(kHeld);
  store::LedgerSlot& slot = page->slots[3];
  slot.pid.store(child.pid()), slot.generation.store(4);
  EXPECT_EQ(inherited(), 0_B) << "this process did not fork it";
  slot.parent.store(std::uint64_t(getpid()));
  EXPECT_EQ(inherited(), 9_MiB);
  slot.inherited_used.store((2_MiB).count);
  EXPECT_EQ(inherited(), 7_MiB);
  slot.generation.store(3);
  EXPECT_EQ(inherited(), 0_B) << "it was forked before";
  slot.generation.store(4);
  own.left_to_children.store((900_GiB).count);
  EXPECT_LE(inherited(), kHeld * 3 + beside) << "it cannot hold more than it holds";
  slot.inherited_used.store((901_GiB).count);
  EXPECT_EQ(inherited(), 0_B);
}

TEST_F(TreeWatchTest, AChildThatRunsAnotherProgramInheritsNothing) {
  constexpr std::size_t kReserved = std::size_t{1} << 40U;
  void* pool = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(pool, MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "100", nullptr);
    _exit(1);
  }
  for (Address stack{}; stack.value == 0 || stack == store::stack_of(getpid()); stack = store::stack_of(child)) {
    usleep(1000);  // in the midst of execlp() the kernel tells no stack
  }
  store::LedgerSlot& slot = page->slots[3];
  slot.pid.store(child), slot.parent.store(std::uint64_t(getpid()));
  own.left_to_children.store((1_MiB).count);
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 2u);
  EXPECT_EQ(own.inherited.load(), 0u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  munmap(pool, kReserved);
}

TEST_F(TreeWatchTest, FollowsHowThoseCountedGrow) {
  const ForkedChild child = child_with(kHeld);
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes before{own.others.load()}, peak{page->tree_peak.load()};
  hold(kHeld);
  follow_tree(*page, tree);
  EXPECT_GE(Bytes{page->tree_peak.load()}, peak + kHeld);
  EXPECT_LE(Bytes{own.others.load()}, before + 4_MiB);  // its own growth does not count as the others'
}

// One process was counted before it gave bytes up, and another one after it took them.
TEST_F(TreeWatchTest, TheSumOfCountsOfDifferentMomentsIsNoPeak) {
  const ForkedChild child = child_with(kHeld);
  void* const at =
      mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const std::vector<TreeMember> tree = count_tree(*page, getpid()).value();
  munmap(at, kHeld.count);
  note_count(*page, tree);
  const Bytes sum = tree[0].proportional + tree[1].proportional;
  EXPECT_LE(Bytes{page->tree_peak.load()}, sum - kHeld + 1_MiB);
  EXPECT_GE(Bytes{page->tree_peak.load()}, sum - kHeld - 1_MiB);
}

TEST_F(TreeWatchTest, WhatAProcessOutsideTheTreeWouldEvictDoesNotCount) {
  own.movable.store(7);
  page->slots[1].pid.store(getppid());
  page->slots[1].movable.store(9);
  TreeMember self;
  self.pid = getpid();
  note_count(*page, {self});
  EXPECT_EQ(own.movable.load(), 7u);
  EXPECT_EQ(page->slots[1].movable.load(), 0u);
}

TEST_F(TreeWatchTest, CountsWhoHasASlotThoughNobodysChild) {
  page->slots[1].pid.store(getppid());
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 2u);
  page->slots[1].ended.store(1);
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 1u);
}

// Does not use the temporary folder: if that is in memory, the pages do not count as a file's.
int file_of(Bytes bytes) {
  const std::string path = programs_folder() / ("tree_watch_test." + std::to_string(getpid()));
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_GE(fd, 0);
  unlink(path.c_str());
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes.count)), 0);
  return fd;
}

// Two processes map a file of weights, and one of them updates its weights. It then holds a copy, and no more than
// before; but the tree holds the file's pages too.
TEST_F(TreeWatchTest, SeesCopiesOfAFilesPages) {
  const int fd = file_of(kHeld);
  const auto map = [fd] { return mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0); };
  const auto read_all = [](const char* at) {
    for (std::uint64_t i = 0; i < kHeld.count; i += 4096) static_cast<void>(*const_cast<const volatile char*>(at + i));
  };
  char* const weights = static_cast<char*>(map());
  ASSERT_NE(weights, MAP_FAILED);
  read_all(weights);
  const ForkedChild child([&] { read_all(static_cast<char*>(map())); });
  store::LedgerSlot& slot = page->slots[1];
  slot.pid.store(child.pid());
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes before{slot.others.load()}, peak{page->tree_peak.load()}, resident = store::resident_now();
  for (std::uint64_t i = 0; i < kHeld.count; i += 4096) weights[i] = 1;
  EXPECT_GE(follow_tree(*page, tree)->copied, kHeld - 1_MiB);
  EXPECT_LE(store::resident_now(), resident + 4_MiB) << "the process itself sees nothing of it";
  EXPECT_GE(Bytes{slot.others.load()}, before + kHeld - 4_MiB);
  EXPECT_LE(Bytes{page->tree_peak.load()}, peak + 8_MiB) << "a guess is no peak";
  counted_tree(*page, getpid());
  EXPECT_GE(Bytes{page->tree_peak.load()}, peak + kHeld - 4_MiB) << "it was right";
  munmap(weights, kHeld.count);
  close(fd);
}

// Until the next count, `others` is what it was. So the growth since must still be told from it.
TEST_F(TreeWatchTest, GrowthIsNotLostIfAnotherProcessHasEnded) {
  const ForkedChild child = child_with(kHeld);
  store::LedgerSlot& slot = page->slots[1];
  slot.pid.store(child.pid());
  std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  ASSERT_EQ(tree.size(), 2u);
  const Bytes before = store::others_of(*page, &slot).held;
  own.rss.fetch_add((30_MiB).count);
  tree.back().pid = INT32_MAX;  // no process has this number
  EXPECT_FALSE(follow_tree(*page, tree).has_value());
  EXPECT_EQ(store::others_of(*page, &slot).held, before + 30_MiB);
}

TEST_F(TreeWatchTest, NotesWhatItSawOfEach) {
  const ForkedChild child = child_with(kHeld);
  store::LedgerSlot& slot = page->slots[1];
  slot.pid.store(child.pid());
  slot.rss_seen.store((1_GiB).count);
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes seen{slot.rss_seen.load()};
  EXPECT_GE(seen, kHeld);
  EXPECT_LE(seen, kHeld + beside) << "it was more before";
  EXPECT_GE(Bytes{own.rss_seen.load()}, 1_MiB);
}

// As a child by fork does with its parent's libraries.
TEST_F(TreeWatchTest, OnlyGuessesThatPagesOfFilesAreNewToTheTree) {
  const int fd = file_of(kHeld);
  const auto read_all = [fd] {
    const void* at = mmap(nullptr, kHeld.count, PROT_READ, MAP_SHARED, fd, 0);
    const auto* bytes = static_cast<const volatile char*>(at);
    for (std::uint64_t i = 0; i < kHeld.count; i += 4096) static_cast<void>(bytes[i]);
  };
  read_all();
  Grandchild grandchild(read_all);
  ASSERT_GT(grandchild.pid(), 0);
  store::LedgerSlot& slot = page->slots[1];
  slot.pid.store(grandchild.pid());
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes before{own.others.load()}, peak{page->tree_peak.load()};
  ASSERT_TRUE(grandchild.works());
  EXPECT_TRUE(follow_tree(*page, tree));
  EXPECT_LE(Bytes{page->tree_peak.load()}, peak + 4_MiB) << "a guess is no peak";
  EXPECT_GE(Bytes{own.others.load()}, before + kHeld - 4_MiB);
  EXPECT_GE(store::others_of(*page, &own).guessed, kHeld - 1_MiB);
  EXPECT_LT(store::others_of(*page, &slot).guessed, 4_MiB) << "they are its own";
  EXPECT_TRUE(counted_tree(*page, getpid()));
  EXPECT_LT(Bytes{own.others.load()}, before + 4_MiB) << "the tree had them";
  EXPECT_LT(store::others_of(*page, &own).guessed, 1_MiB);
  close(fd);
}

TEST_F(TreeWatchTest, CallsNoPageACopyThatNobodyElseHas) {
  const int fd = file_of(kHeld);
  char* const weights =
      static_cast<char*>(mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE, fd, 0));
  ASSERT_NE(weights, MAP_FAILED);
  munmap(weights, kHeld.count);  // the file is read in, and nobody maps it
  const ForkedChild child([] {});
  char* const own_weights = static_cast<char*>(mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
  ASSERT_NE(own_weights, MAP_FAILED);
  for (std::uint64_t i = 0; i < kHeld.count; i += 4096) static_cast<void>(*const_cast<volatile char*>(own_weights + i));
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes with_others = tree.front().with_others;
  EXPECT_LE(with_others, beside);
  for (std::uint64_t i = 0; i < kHeld.count; i += 4096) own_weights[i] = 1;
  EXPECT_LE(follow_tree(*page, tree)->copied, with_others);
  munmap(own_weights, kHeld.count);
  close(fd);
}

// Two programs use the same libraries, and the one outside the tree ends. Then the tree's figure must not rise.
TEST_F(TreeWatchTest, CountsAFilesPagesWholeThoughOthersOutsideTheTreeHaveThemToo) {
  const int fd = file_of(kHeld);
  const auto map = [fd] { return mmap(nullptr, kHeld.count, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0); };
  const ForkedChild root([&] {
    EXPECT_NE(map(), MAP_FAILED);
    if (fork() == 0) {
      for (;;) pause();
    }
  });
  const auto counted = [&] {
    page->tree_peak.store(0);
    EXPECT_EQ(counted_tree(*page, root.pid())->size(), 2u);
    return Bytes{page->tree_peak.load()};
  };
  own.pid.store(0);  // this process is not part of the tree
  const Bytes alone = counted();
  void* const here = map();
  ASSERT_NE(here, MAP_FAILED);
  const Bytes beside_another = counted();
  munmap(here, kHeld.count);
  EXPECT_GE(alone, kHeld);
  EXPECT_GE(beside_another + 1_MiB, alone);
  EXPECT_LE(beside_another, alone + 1_MiB);
  for (const std::int32_t pid : store::process_tree(root.pid())) kill(pid, SIGKILL);
  close(fd);
}

TEST_F(TreeWatchTest, TellsNothingWhenOneEnded) {
  std::vector<TreeMember> tree;
  {
    const ForkedChild child = child_with(kHeld);
    tree = counted_tree(*page, getpid()).value();
    own.others.store(7);
  }
  EXPECT_FALSE(follow_tree(*page, tree).has_value());
  EXPECT_EQ(own.others.load(), 7u);
  EXPECT_EQ(counted_tree(*page, getpid())->size(), 1u);
}

TEST_F(TreeWatchTest, TakesWhatAYoungChildWritesOfItsParentsPagesForItsOwn) {
  char* shared = static_cast<char*>(
      mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  madvise(shared, kHeld.count, MADV_NOHUGEPAGE);
  Grandchild grandchild([shared] {
    for (std::uint64_t i = 0; i < kHeld.count; i += 4096) shared[i] = 1;
  });
  ASSERT_GT(grandchild.pid(), 0);
  store::LedgerSlot& slot = page->slots[1];
  slot.pid.store(grandchild.pid());
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes before{own.others.load()};
  ASSERT_TRUE(grandchild.works());
  EXPECT_LT(follow_tree(*page, tree)->copied, 1_MiB) << "it was not forked moments ago";
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  slot.forked_at.store(std::uint64_t(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  slot.parent.store(1);
  slot.copies_expected.store((3_MiB).count);
  EXPECT_GE(follow_tree(*page, tree)->copied, kHeld - 1_MiB);
  EXPECT_EQ(slot.copies_expected.load(), 0u) << "it has them";
  EXPECT_GE(store::others_of(*page, &own).guessed, kHeld - 1_MiB) << "by its page faults alone, this might be wrong";
  EXPECT_GE(Bytes{own.others.load()}, before + kHeld - 4_MiB);  // it also shares pages with the rest of the system
  EXPECT_TRUE(counted_tree(*page, getpid()));
  EXPECT_GE(Bytes{own.others.load()}, before + kHeld - 4_MiB);
  EXPECT_LT(store::others_of(*page, &own).guessed, 1_MiB) << "now it is counted";
  munmap(shared, kHeld.count);
}

// A process that forks also copies pages: it writes to its heap and its reference counts as the child does.
TEST_F(TreeWatchTest, TakesWhatAProcessWritesThatJustForkedForItsOwn) {
  char* shared = static_cast<char*>(
      mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  madvise(shared, kHeld.count, MADV_NOHUGEPAGE);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const ForkedChild child([] {});
  own.forked_at.store(std::uint64_t(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  own.copies_expected.store((kHeld * 2).count);
  const std::vector<TreeMember> tree = counted_tree(*page, getpid()).value();
  const Bytes before{own.others.load()}, peak{page->tree_peak.load()};
  for (std::uint64_t i = 0; i < kHeld.count; i += 4096) shared[i] = 1;
  EXPECT_GE(follow_tree(*page, tree)->copied, kHeld - 1_MiB);
  EXPECT_EQ(Bytes{own.copies_expected.load()}, kHeld * 2) << "its faults are no copies for certain";
  EXPECT_GE(Bytes{own.others.load()}, before + kHeld - 4_MiB) << "the child keeps what it wrote over";
  EXPECT_LE(Bytes{page->tree_peak.load()}, peak + 8_MiB) << "a guess is no peak";
  munmap(shared, kHeld.count);
}

TEST_F(TreeWatchTest, CountsWhenItIsAskedToAndWhatWasSharedIsCountedThen) {
  const ForkedChild child = child_with(kHeld);
  own.diverged.store(5);
  const TreeWatch watch(*page, getpid());
  EXPECT_TRUE(store::await_count(*page, nullptr, std::chrono::seconds(60)));
  EXPECT_TRUE(store::await_count(*page, nullptr, std::chrono::seconds(60)));
  EXPECT_EQ(page->counts_made.load(), 2u);
  EXPECT_EQ(own.diverged_counted.load(), 5u);
  EXPECT_GE(Bytes{own.others.load()}, kHeld / 2);
}

TEST_F(TreeWatchTest, CountsNoResidentBytesWhereTheBudgetIsACards) {
  page->card.store(1);
  own.rss.store(5);
  const ForkedChild child = child_with(kHeld);
  const TreeWatch watch(*page, getpid());
  EXPECT_TRUE(store::await_count(*page, nullptr, std::chrono::seconds(60)));  // whoever asks gets an answer
  EXPECT_TRUE(counted_tree(*page, getpid())->empty());
  EXPECT_EQ(own.others.load(), 0u);
  EXPECT_EQ(own.rss_counted.load(), 0u);
  EXPECT_EQ(page->tree_peak.load(), 0u);
}

// As a compiler does that the program starts.
TEST_F(TreeWatchTest, CountsAtOnceWhenAProcessStartsThatHasNoSlot) {
  const TreeWatch watch(*page, getpid(), {.between_counts = std::chrono::hours(1)});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the first count is of this process alone
  const ForkedChild child = child_with(kHeld);
  for (int waits = 0; waits < 2000 && Bytes{page->tree_peak.load()} < kHeld; ++waits) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(Bytes{page->tree_peak.load()}, kHeld) << "only a count knows both";
}

// A child of vfork() shows its parent's pages as its own too, until it runs another program.
TEST_F(TreeWatchTest, CountsOnceWhatTwoProcessesHaveBetweenThem) {
  std::array<std::byte, 64 << 10> stack;
  const auto wait = [](void*) {
    for (;;) pause();
    return 0;
  };
  const pid_t child = clone(wait, stack.data() + stack.size(), CLONE_VM | SIGCHLD, nullptr);
  ASSERT_GT(child, 0) << std::strerror(errno);
  const std::optional<std::vector<TreeMember>> tree = count_tree(*page, getpid());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->size(), 1u);
}

TEST_F(TreeWatchTest, FollowsWhoStartedSinceTheCount) {
  const std::vector<TreeMember> alone = *count_tree(*page, getpid());
  const ForkedChild shares = child_with(kHeld);
  follow_tree(*page, alone, {shares.pid()});
  EXPECT_EQ(own.others.load(), 0u) << "a count must tell what is its own";
  EXPECT_EQ(page->tree_peak.load(), 0u);
  EXPECT_EQ(page->largest_program.load(), 0u);
  pid_t program = 0;
  ASSERT_NO_FATAL_FAILURE(start_dd(program));
  for (int waits = 0; waits < 2000 && Bytes{own.others.load()} < kHeld; ++waits) {
    follow_tree(*page, alone, {program});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  EXPECT_GE(Bytes{own.others.load()}, kHeld);
  EXPECT_LE(Bytes{own.others.load()}, kHeld + 4_MiB);
  EXPECT_LE(Bytes{page->tree_peak.load()}, beside) << "it is an estimate";
  EXPECT_GE(Bytes{page->largest_program.load()}, kHeld);
}

// dd takes 64 MiB, and is stopped before it has them all. Without room it goes on after a while.
TEST_F(TreeWatchTest, HoldsAProgramThatPassesTheBudget) {
  own.pool_resident.store(kHeld.count);
  page->budget.store((beside + kHeld / 2).count);
  pid_t program = 0;
  {
    const TreeWatch watch(*page, getpid());
    ASSERT_NO_FATAL_FAILURE(start_dd(program));
    for (int waits = 0; waits < 4000 && page->programs_held_us.load() == 0; ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  EXPECT_GT(page->programs_held_us.load(), 0u);
}

// As Ctrl-C would, which reaches no process that is stopped.
TEST_F(TreeWatchTest, LetsAProgramGoOnThatIsToReceiveASignal) {
  page->budget.store((beside + kHeld / 2).count);
  pid_t program = 0;
  {
    const TreeWatch watch(*page, getpid());
    ASSERT_NO_FATAL_FAILURE(start_dd(program));
    EXPECT_TRUE(is_told_of(program, WUNTRACED)) << "the pool has nothing to give";
    const SignalForwarder signals;
    EXPECT_EQ(raise(SIGTERM), 0);
    EXPECT_TRUE(is_told_of(program, WCONTINUED));
    EXPECT_FALSE(watch.has_ended_it());
  }
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
}

TEST_F(TreeWatchTest, EndsATreeThatDoesNotFitThoughThePoolsGaveAll) {
  page->budget.store((beside + kHeld / 2).count);
  const ForkedChild root([] {
    pid_t program = 0;
    start_dd(program);
  });
  const TreeWatch watch(*page, root.pid(), {.longest_turn = std::chrono::milliseconds(300)});
  ASSERT_TRUE(is_told_of(root.pid(), WEXITED));
  EXPECT_TRUE(watch.has_ended_it());
  EXPECT_EQ(page->too_little.get().substr(0, 12), "dd (process ");
  EXPECT_GT(page->least_for_programs.load(), page->budget.load());
}

TEST_F(TreeWatchTest, LooksUntilItEnds) {
  {
    const TreeWatch watch(*page, getpid());
    const ForkedChild child = child_with(kHeld);
    for (int waits = 0; waits < 2000 && own.others.load() == 0; ++waits) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_GT(own.others.load(), 0u);
  }
  own.others.store(7);
  const ForkedChild child = child_with(kHeld);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(own.others.load(), 7u);
}

}  // namespace
}  // namespace ullage::cli
