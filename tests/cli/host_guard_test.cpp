// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/host_guard.h"

#include "forked_child.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kTaken = 64_MiB;  // by the program
constexpr std::chrono::milliseconds kBetweenLooks{10};

// A program that really holds 64 MiB, on a machine whose memory is made up.
class HostGuardTest : public testing::Test {
 protected:
  HostGuardTest() { fs::create_directories(root_ / "proc"); }
  ~HostGuardTest() override { fs::remove_all(root_); }

  // Looks at a machine with this much left, 10 ms after the look before.
  bool look(Bytes left) {
    std::ofstream(root_ / "proc/meminfo") << "MemTotal: 8388608 kB\nMemAvailable: " << left.count / 1024 << " kB\n";
    return guard_.look(program_.pid(), now_ += kBetweenLooks);
  }

  static fs::path new_folder() {
    std::string name = (fs::temp_directory_path() / "ullage-guard-XXXXXX").string();
    return mkdtemp(name.data());
  }

  const fs::path root_ = new_folder();
  HostGuard::Clock::time_point now_{};
  HostGuard guard_{{root_ / "cgroup", root_ / "proc"}, root_};
  ForkedChild program_{[] { static const std::vector<char> taken(kTaken.count, 'x'); }};
};

TEST_F(HostGuardTest, EndsAProgramThatTookWhatIsGone) {
  EXPECT_FALSE(look(128_MiB));
  EXPECT_FALSE(look(7_MiB));  // asks for its line
  EXPECT_FALSE(guard_.filled());
  EXPECT_TRUE(look(7_MiB));
  ASSERT_TRUE(guard_.filled());
  EXPECT_EQ(guard_.filled()->left, 7_MiB);
  EXPECT_EQ(guard_.filled()->most, 8_GiB);
  EXPECT_EQ(guard_.filled()->process, program_.pid());
  EXPECT_GE(guard_.filled()->held, kTaken);
  EXPECT_EQ(guard_.filled()->place.file, "") << "it is no Python";
  EXPECT_NE(guard_.filled()->command.find("_test"), std::string::npos) << guard_.filled()->command;
}

TEST_F(HostGuardTest, LeavesAProgramAloneIfOthersTookWhatIsGone) {
  EXPECT_FALSE(look(8_GiB));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(1_MiB));
  EXPECT_FALSE(guard_.filled());
}

TEST_F(HostGuardTest, LeavesAProgramAloneThatBeganWithLittle) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(2_MiB));
}

TEST_F(HostGuardTest, KeepsAsMuchAsGrowthMayTakeBeforeTheNextLook) {
  EXPECT_FALSE(look(160_MiB));
  EXPECT_FALSE(look(120_MiB));  // 40 MiB in 10 ms may be 400 MiB in 100 ms
  EXPECT_TRUE(look(80_MiB));
}

TEST_F(HostGuardTest, LetsAProgramGoOnThatStopsGrowing) {
  EXPECT_FALSE(look(160_MiB));
  EXPECT_FALSE(look(120_MiB));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(120_MiB));
}

}  // namespace
}  // namespace ullage::cli
