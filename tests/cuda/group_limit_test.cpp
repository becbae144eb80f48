// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/group_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace ullage::cuda {
namespace {

namespace fs = std::filesystem;

// A made-up machine: the group /jobs/mine of version 2.
class GroupLimitTest : public testing::Test {
 protected:
  GroupLimitTest() {
    put(roots_.proc / "self" / "cgroup", "4:memory:/old\n0::/jobs/mine\n");
    fs::create_directories(roots_.cgroup / "jobs" / "mine");
  }
  ~GroupLimitTest() override { fs::remove_all(folder_); }

  void put(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void set(const fs::path& group, const std::string& text) { put(roots_.cgroup / group / "dmem.max", text); }
  std::optional<Bytes> limit() { return group_limit("0000:3B:00.0", roots_); }

  const fs::path folder_ = fs::temp_directory_path() / ("ullage-groups-" + std::to_string(::getpid()));
  const GroupRoots roots_{.cgroup = folder_ / "cgroup", .proc = folder_ / "proc"};
};

TEST_F(GroupLimitTest, IsThatOfTheCard) {
  EXPECT_FALSE(limit()) << "no group has the file";
  set("jobs/mine", "drm/0000:3b:00.0/vram0 max\ndrm/0000:5e:00.0/vram0 1073741824\n");
  EXPECT_FALSE(limit()) << "the limit is another card's";
  set("jobs/mine", "drm/0000:3b:00.0/vram0 6442450944\ndrm/0000:5e:00.0/vram0 1073741824\n");
  EXPECT_EQ(limit(), 6_GiB);
}

TEST_F(GroupLimitTest, IsTheLeastOfAllGroupsAbove) {
  set("jobs/mine", "drm/0000:3b:00.0/vram0 8589934592\n");
  set("jobs", "drm/0000:3b:00.0/vram0 4294967296\n");
  EXPECT_EQ(limit(), 4_GiB);
  set("jobs/other", "drm/0000:3b:00.0/vram0 1048576\n");
  EXPECT_EQ(limit(), 4_GiB) << "the process is not in that group";
}

TEST_F(GroupLimitTest, AddsUpTheRegionsOfACard) {
  set("jobs/mine", "drm/0000:3b:00.0/vram0 1073741824\ndrm/0000:3b:00.0/vram1 2147483648\n");
  EXPECT_EQ(limit(), 3_GiB);
  set("jobs/mine", "drm/0000:3b:00.0/vram0 1073741824\ndrm/0000:3b:00.0/vram1 max\n");
  EXPECT_FALSE(limit());
}

TEST_F(GroupLimitTest, TakesNoHarmFromOtherText) {
  set("jobs/mine", "\n \ndrm/0000:3b:00.0/vram0\ndrm/0000:3b:00.0/vram0 -\n");
  EXPECT_FALSE(limit());
  put(roots_.proc / "self" / "cgroup", "");
  set("", "drm/0000:3b:00.0/vram0 1073741824\n");
  EXPECT_EQ(limit(), 1_GiB) << "in a container the root of the mount is the process's group";
}

}  // namespace
}  // namespace ullage::cuda
