// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

// Reads the machine's memory from a made-up /proc and /sys/fs/cgroup.
class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() {
    std::string name = (fs::temp_directory_path() / "ullage-machine-XXXXXX").string();
    root_ = mkdtemp(name.data());
    roots_ = {root_ / "cgroup", root_ / "proc"};
    file("proc/meminfo", "MemTotal:       8388608 kB\nMemFree:          1000 kB\nMemAvailable:    4194304 kB\n");
  }
  ~MachineMemoryTest() override { fs::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  MachineMemory read() { return read_machine_memory(roots_); }
  std::optional<Bytes> left() { return memory_left(memory_groups(roots_), roots_); }
  std::optional<std::uint64_t> kills() { return oom_kills(memory_groups(roots_), roots_); }

  fs::path root_;
  MachineRoots roots_;
};

constexpr const char* kNoLimitV1 = "9223372036854771712\n";

TEST_F(MachineMemoryTest, WithoutControlGroupsIsWhatIsAvailableLessFivePercent) {
  EXPECT_EQ(read().total, 8_GiB);
  EXPECT_FALSE(read().limit);
  EXPECT_EQ(auto_budget(read()), 4_GiB - 4_GiB / 20);
  EXPECT_EQ(most_there_is(read()), 8_GiB);
}

TEST_F(MachineMemoryTest, WhatIsLeftIsWhatIsAvailableAndTheFreeSwap) {
  EXPECT_EQ(left(), 4_GiB);
  file("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapFree: 1048576 kB\n");
  EXPECT_EQ(left(), 5_GiB);
}

TEST_F(MachineMemoryTest, OfAGroupPagesOfFilesAreLeftToo) {
  file("proc/self/cgroup", "0::/user/shell\n");
  file("cgroup/user/shell/memory.max", "1073741824\n");
  file("cgroup/user/shell/memory.current", "805306368\n");
  EXPECT_EQ(left(), 256_MiB);
  file("cgroup/user/shell/memory.stat", "anon 1\ninactive_file 134217728\nactive_file 67108864\n");
  EXPECT_EQ(left(), 448_MiB);
}

TEST_F(MachineMemoryTest, AGroupHasAsMuchSwapAsItMayUse) {
  file("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapFree: 1048576 kB\n");
  file("proc/self/cgroup", "0::/user\n");
  file("cgroup/user/memory.max", "1073741824\n");
  file("cgroup/user/memory.current", "805306368\n");
  EXPECT_EQ(left(), 256_MiB + 1_GiB) << "no limit on swap";
  file("cgroup/user/memory.swap.max", "134217728\n");
  file("cgroup/user/memory.swap.current", "67108864\n");
  EXPECT_EQ(left(), 256_MiB + 64_MiB);
  file("cgroup/user/memory.swap.max", "0\n");
  EXPECT_EQ(left(), 256_MiB);
}

TEST_F(MachineMemoryTest, OfAGroupOfVersion1PagesOfFilesAreLeftToo) {
  file("proc/self/cgroup", "4:memory:/job\n");
  file("cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  file("cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  file("cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 134217728\ntotal_active_file 67108864\n");
  EXPECT_EQ(left(), 192_MiB);
}

TEST_F(MachineMemoryTest, WithNothingToReadIsUnlimited) {
  fs::remove_all(root_ / "proc");
  EXPECT_EQ(auto_budget(read()), 0_B);
  EXPECT_FALSE(most_there_is(read()));
  EXPECT_FALSE(kills());
}

TEST_F(MachineMemoryTest, Version2TakesTheOwnGroupsLimit) {
  file("proc/self/cgroup", "0::/user/shell\n");
  file("cgroup/user/shell/memory.max", "1073741824\n");
  file("cgroup/user/memory.max", "max\n");
  EXPECT_EQ(read().limit, 1_GiB);
  EXPECT_EQ(auto_budget(read()), 1_GiB - 1_GiB / 20);
  EXPECT_EQ(most_there_is(read()), 1_GiB);
}

TEST_F(MachineMemoryTest, Version2TakesAnAncestorsLimitWhereThatIsLess) {
  file("proc/self/cgroup", "0::/user/shell/job\n");
  file("cgroup/user/shell/job/memory.max", "2147483648\n");
  file("cgroup/user/memory.max", "536870912\n");
  EXPECT_EQ(read().limit, 512_MiB);
}

TEST_F(MachineMemoryTest, Version2TakesNoLimitOfABrother) {
  file("proc/self/cgroup", "0::/user/shell\n");
  file("cgroup/user/shell/memory.max", "max\n");
  file("cgroup/user/other/memory.max", "1024\n");
  EXPECT_FALSE(read().limit);
}

TEST_F(MachineMemoryTest, Version2InAContainerStandsAtTheMountsRoot) {
  file("proc/self/cgroup", "0::/\n");
  file("cgroup/memory.max", "805306368\n");
  EXPECT_EQ(read().limit, 768_MiB);
}

TEST_F(MachineMemoryTest, Version2AboveTheContainersOwnRootIsPassedOver) {
  file("proc/self/cgroup", "0::/../other/job\n");
  file("cgroup/memory.max", "805306368\n");
  file("other/job/memory.max", "1024\n");  // the path would name this file if ".." led out of the mount
  EXPECT_EQ(read().limit, 768_MiB);
}

TEST_F(MachineMemoryTest, Version1TakesTheLeastOfGroupAndAncestors) {
  file("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n");
  file("cgroup/memory/docker/abc/memory.limit_in_bytes", kNoLimitV1);
  file("cgroup/memory/docker/memory.limit_in_bytes", "3221225472\n");
  file("cgroup/memory/memory.limit_in_bytes", kNoLimitV1);
  EXPECT_EQ(read().limit, 3_GiB);
}

TEST_F(MachineMemoryTest, Version1SaysNoLimitWithAHugeNumber) {
  file("proc/self/cgroup", "4:memory:/\n");
  file("cgroup/memory/memory.limit_in_bytes", kNoLimitV1);
  EXPECT_FALSE(read().limit);
}

TEST_F(MachineMemoryTest, Version1WhosePathIsTheHostsTakesTheEndThatExists) {
  file("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  file("cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(read().limit, 2_GiB);  // no part of the path exists below the mount
  file("cgroup/memory/inner/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(read().limit, 1_GiB);
}

TEST_F(MachineMemoryTest, BothVersionsSideBySideGiveTheLess) {
  file("proc/self/cgroup", "4:memory:/a\n0::/b\n");
  file("cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
  file("cgroup/unified/b/memory.max", "1073741824\n");
  EXPECT_EQ(read().limit, 1_GiB);
  file("cgroup/unified/b/memory.max", "max\n");
  EXPECT_EQ(read().limit, 2_GiB);
}

TEST_F(MachineMemoryTest, AControllerOfAnotherNameIsNotMemory) {
  file("proc/self/cgroup", "4:memoryless,cpu:/a\n");
  file("cgroup/memory/a/memory.limit_in_bytes", "1024\n");
  EXPECT_FALSE(read().limit);
}

TEST_F(MachineMemoryTest, ALimitAboveTheAvailableDoesNotCount) {
  file("proc/self/cgroup", "0::/\n");
  file("cgroup/memory.max", "6442450944\n");
  EXPECT_EQ(auto_budget(read()), 4_GiB - 4_GiB / 20);
}

TEST_F(MachineMemoryTest, BrokenFilesSayNothing) {
  file("proc/self/cgroup", "garbage\n0::\n4:memory\n\n");
  file("cgroup/memory.max", "lots\n");
  file("proc/meminfo", "MemTotal: much\n");
  EXPECT_FALSE(read().limit);
  EXPECT_EQ(auto_budget(read()), 0_B);
}

TEST_F(MachineMemoryTest, KillsAreSummedOverTheGroupsOfBothVersions) {
  file("proc/self/cgroup", "4:memory:/a\n0::/b/c\n");
  file("cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  file("cgroup/unified/b/c/memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 7\n");
  file("cgroup/unified/b/memory.events", "oom_kill 4\n");
  file("proc/vmstat", "oom_kill 100\n");
  EXPECT_EQ(kills(), 9u);
}

TEST_F(MachineMemoryTest, KillsOfTheMachineCountWhereNoGroupCanBeRead) {
  EXPECT_FALSE(kills());
  file("proc/vmstat", "nr_free_pages 5\noom_kill 6\n");
  EXPECT_EQ(kills(), 6u);
}

TEST(MachineMemory, OfThisMachineIsRead) {
  const MachineMemory memory = read_machine_memory({});
  ASSERT_TRUE(memory.total && memory.available);
  EXPECT_GE(*memory.total, *memory.available);
  EXPECT_GT(auto_budget(memory), 1_MiB);
}

}  // namespace
}  // namespace ullage::cli
