// SPDX-License-Identifier: Apache-2.0
// Uses a real memory cgroup with a real limit: which budget `auto` chooses, and what is reported after the kernel's
// kill.
#include "ullage_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kLimit = 256ull << 20;  // large beside the launcher, even under a sanitizer

bool put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

// A cgroup limited to 256 MiB, of version 1 or 2, whichever this process may create. Removed at the end.
class LimitedGroup final {
 public:
  LimitedGroup() {
    if (!make("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")) {
      make("/sys/fs/cgroup", "memory.max", "memory.swap.max");
    }
  }
  ~LimitedGroup() {
    if (path_) ::rmdir(path_->c_str());
  }
  const std::optional<fs::path>& path() const { return path_; }
  const std::string& why_not() const { return why_not_; }

 private:
  bool make(const fs::path& mount, const char* limit_file, const char* swap_file) {
    const fs::path group = mount / ("ullage-test-" + std::to_string(::getpid()));
    std::error_code failed;
    if (!fs::create_directory(group, failed)) {
      why_not_ += group.string() + ": " + failed.message() + "; ";
      return false;
    }
    const bool exists = fs::exists(group / limit_file, failed);
    if (!exists || !put(group / limit_file, std::to_string(kLimit)) ||
        ::access((group / "cgroup.procs").c_str(), W_OK) != 0) {
      why_not_ += (group / limit_file).string() + ": cannot be set; ";
      ::rmdir(group.c_str());
      return false;
    }
    // Version 1 limits memory and swap together, version 2 swap alone. On a machine without swap both files may be
    // missing.
    put(group / swap_file, std::string(swap_file).find("memsw") != std::string::npos ? std::to_string(kLimit) : "0");
    path_ = group;
    return true;
  }
  std::optional<fs::path> path_;
  std::string why_not_;
};

class KernelKill : public testing::Test {
 protected:
  void SetUp() override {
    if (!group_.path()) GTEST_SKIP() << "no memory control group can be made here: " << group_.why_not();
  }
  // Runs `ullage run WORDS` with the launcher and all its children inside the group.
  Finished run(const std::string& words) { return in_group("run --report " + folder_.file("run.json") + " " + words); }
  Finished explain(const std::string& command) {
    return in_group("explain --keep " + folder_.file("kept") + " -- " + command);
  }
  // The kernel may not kill the launcher. Otherwise it sometimes kills that too, because it takes a page while the
  // program that was killed still holds its pages.
  Finished in_group(const std::string& words) {
    return Process({"/bin/sh", "-c",
                    "echo $$ > " + (*group_.path() / "cgroup.procs").string() +
                        " && { echo -1000 > /proc/$$/oom_score_adj; } 2>/dev/null; exec " + folder_.file("ullage") +
                        " " + words})
        .finish();
  }
  ShippedFolder folder_;
  LimitedGroup group_;
};

TEST_F(KernelKill, AutoStaysBelowTheGroupsLimit) {
  EXPECT_EQ(run("fake").exit_code, 0);
  EXPECT_EQ(folder_.json("run.json")["budget_bytes"], kLimit - kLimit / 20);
}

TEST_F(KernelKill, ABudgetAboveTheGroupsLimitIsWarnedOf) {
  EXPECT_NE(run("--memory 1GiB fake").err.find("is more than the 256.00 MiB"), std::string::npos);
}

TEST_F(KernelKill, IsSaidAndTheFiguresUpToItAreKept) {
  const Finished end = run("--memory 1GiB fake killable attach steps=3 eat=800MiB");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_NE(end.err.find("ullage: KILLED BY THE KERNEL for lack of memory: 3 steps"), std::string::npos) << end.err;
  const auto json = folder_.json("run.json");
  EXPECT_EQ(json["outcome"], "killed_by_kernel");
  EXPECT_EQ(json["steps"], 3);
  EXPECT_GT(json["process_peak_bytes"], 150u << 20);
  EXPECT_LE(json["process_peak_bytes"],
            kLimit + (8u << 20));  // the report also counts file pages that others read in; the group does not
}

TEST_F(KernelKill, IsSeenBehindAShellToo) {
  const Finished end = run("-- sh -c '" + folder_.file("ullage-fake") + " killable eat=800MiB; exit $?'");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(folder_.json("run.json")["outcome"], "killed_by_kernel");
}

TEST_F(KernelKill, IsExplained) {
  const Finished end = explain(folder_.file("ullage-fake") + " killable eat=800MiB");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_NE(end.err.find("the kernel killed ullage-fake for lack of memory"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("the machine gives 256.00 MiB"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("Host memory ran out"), std::string::npos) << end.err;
}

TEST_F(KernelKill, OfAProcessOfTheCommandIsExplained) {
  const Finished end =
      explain("sh -c '" + folder_.file("ullage-fake") + " killable eat=800MiB; echo worker died >&2; exit 1'");
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.err.find("the kernel killed a process of sh for lack of memory"), std::string::npos) << end.err;
}

TEST_F(KernelKill, IsNotSaidOfAnothersSignalNine) {
  const Finished end = run("fake attach kill=9");
  EXPECT_EQ(folder_.json("run.json")["outcome"], "failed");
  EXPECT_NE(end.err.find("the control group counted no out-of-memory kill"), std::string::npos) << end.err;
}

}  // namespace
}  // namespace ullage::cli
