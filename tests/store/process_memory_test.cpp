// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/process_memory.h"

#include "forked_child.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace ullage::store {
namespace {

constexpr Bytes kHeld = 64_MiB;
constexpr Bytes kBeside = 16_MiB;  // the most that a process holds besides

std::vector<char> hold() { return std::vector<char>(kHeld.count, 'x'); }

TEST(ProcessMemory, CountsPagesThatAChildSharesOnce) {
  const std::vector<char> held = hold();
  const ForkedChild child([] {});
  EXPECT_GE(resident_of(child.pid()), kHeld);
  const Bytes both = proportional_of(getpid()) + proportional_of(child.pid());
  EXPECT_GE(both, kHeld);
  EXPECT_LE(both, kHeld + kBeside);
}

TEST(ProcessMemory, CountsWhatAChildTookItself) {
  const ForkedChild child([] {
    static std::vector<char> held;
    held = hold();
  });
  EXPECT_GE(proportional_of(child.pid()), kHeld);
  EXPECT_LE(proportional_of(getpid()), kBeside);
}

TEST(ProcessMemory, AgreesWithWhatAProcessSaysOfItself) {
  const Bytes now = resident_now();
  EXPECT_LE(resident_of(getpid()), now + 4_MiB);
  EXPECT_GE(resident_of(getpid()) + 4_MiB, now);
}

TEST(ProcessMemory, CountsWhatFaultsGave) {
  char* at = static_cast<char*>(mmap(nullptr, kHeld.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(at, MAP_FAILED);
  madvise(at, kHeld.count, MADV_NOHUGEPAGE);
  const Bytes before = faulted_of(getpid());
  for (std::uint64_t i = 0; i < kHeld.count; i += 4096) at[i] = 1;
  EXPECT_GE(faulted_of(getpid()), before + kHeld);
  EXPECT_LE(faulted_of(getpid()), before + kHeld + kBeside);
  munmap(at, kHeld.count);
}

TEST(ProcessMemory, WhoHasEndedHoldsNone) {
  EXPECT_TRUE(holds_memory(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(holds_memory(child));  // a zombie: its parent has not reaped it yet
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(holds_memory(child));
  EXPECT_EQ(faulted_of(child), Bytes{});
}

TEST(ProcessMemory, FindsTheTree) {
  const pid_t self = getpid();
  EXPECT_EQ(process_tree(self), std::vector<std::int32_t>{self});
  int told[2] = {-1, -1};
  ASSERT_EQ(pipe(told), 0);
  const ForkedChild child([&] {
    const pid_t inner = fork();
    if (inner == 0) pause();
    if (write(told[1], &inner, sizeof inner) != sizeof inner) _exit(1);
  });
  pid_t inner = 0;
  ASSERT_EQ(read(told[0], &inner, sizeof inner), static_cast<ssize_t>(sizeof inner));
  EXPECT_EQ(process_tree(self), (std::vector<std::int32_t>{self, child.pid(), inner}));
  kill(inner, SIGKILL);
  close(told[0]), close(told[1]);
}

TEST(ProcessMemory, HasNothingOfAProcessThatIsGone) {
  pid_t gone = 0;
  {
    const ForkedChild child([] {});
    gone = child.pid();
  }
  EXPECT_EQ(resident_of(gone), Bytes{});
  EXPECT_EQ(proportional_of(gone), Bytes{});
  EXPECT_EQ(process_tree(gone), std::vector<std::int32_t>{gone});
}

}  // namespace
}  // namespace ullage::store
