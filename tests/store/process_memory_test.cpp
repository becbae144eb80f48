// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/process_memory.h"

#include "forked_child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace ullage::store {
namespace {

constexpr Bytes kHeld = 64_MiB;
constexpr Bytes kBeside = 16_MiB;  // of what a process holds otherwise, at most

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
