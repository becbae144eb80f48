// SPDX-License-Identifier: Apache-2.0
// Runs `ullage advise` with real processes that record made-up trainings, and with files.
#include "fake_training.h"
#include "ullage_process.h"

#include "../folders.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace ullage::cli {
namespace {

class AdviseCommand : public testing::Test {
 protected:
  Finished advise(Words words) {
    words.insert(words.begin(), {folder_.file("ullage"), "advise"});
    return Process(words, {{"TMPDIR", folder_.path().string()}}).finish();
  }
  static nlohmann::json json_of(const Finished& end) {
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return end.exit_code == 0 ? nlohmann::json::parse(end.out) : nlohmann::json();
  }
  static nlohmann::json remedy(const nlohmann::json& advice, const std::string& id) {
    for (const auto& one : advice["remedies"]) {
      if (one["id"] == id) return one;
    }
    return {};
  }

  ShippedFolder folder_;
};

TEST_F(AdviseCommand, AProgramOnTheCpuThatFits) {
  const nlohmann::json advice =
      json_of(advise({"--json", "--memory", "8GiB", "--", folder_.file("ullage-fake"), "train", "4"}));
  EXPECT_EQ(advice["format"], "ullage-advice");
  EXPECT_EQ(advice["plain"]["fits"], true) << advice;
  EXPECT_TRUE(remedy(advice, "ullage_run").is_null());
}

TEST_F(AdviseCommand, TheLargestSizeThatFits) {
  const nlohmann::json advice =
      json_of(advise({"--json", "--memory", "8GiB", "--seconds", "300", "--vary", "batch", "--at", "batch=4", "--",
                      folder_.file("ullage-fake"), "train", "{batch}"}));
  const nlohmann::json largest = remedy(advice, "smaller_batch");
  ASSERT_FALSE(largest.is_null()) << advice;
  EXPECT_EQ(largest["fits"], true);
  EXPECT_LE(largest["peak_bytes"].get<std::uint64_t>(), std::uint64_t{8} << 30);
}

TEST_F(AdviseCommand, AShippedProgramIsTriedAtItsOwnOptions) {
  const auto need = [&](const std::string& option) {
    const Finished end = Process({folder_.file("ullage"), "predict", "--json", "fake", option, "rehearse=64"}).finish();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return nlohmann::json::parse(end.out)["process_peak_bytes"].get<std::uint64_t>();
  };
  const std::uint64_t fits = need("--rows=23");
  const nlohmann::json advice = json_of(
      advise({"--json", "--seconds", "300", "--memory", std::to_string(fits), "fake", "--rows=64", "rehearse=64"}));
  EXPECT_EQ(advice["plain"]["fits"], false);
  EXPECT_EQ(advice["plain"]["peak_bytes"], need("--rows=64"));

  const nlohmann::json rows = remedy(advice, "rows");
  ASSERT_FALSE(rows.is_null()) << advice;
  EXPECT_EQ(rows["name"], "--rows 23: the largest that fits");
  EXPECT_EQ(rows["basis"], "tried");
  EXPECT_EQ(rows["peak_bytes"], fits);
  EXPECT_EQ(rows["class"], "rounding") << "as the program says";
  const std::string action = rows["action"];
  EXPECT_TRUE(action.ends_with(" fake --rows=23 rehearse=64 --allow fewer")) << action;

  const nlohmann::json side = remedy(advice, "side"), batch = remedy(advice, "smaller_batch");
  EXPECT_EQ(side["class"], "different") << "the program says nothing of it";
  EXPECT_EQ(batch["fits"], true) << advice;
  EXPECT_LE(batch["peak_bytes"].get<std::uint64_t>(), fits);
}

TEST_F(AdviseCommand, APageIsWritten) {
  const std::string page = folder_.file("page.html");
  json_of(advise({"--json", "--html", page, "--memory", "8GiB", "--", folder_.file("ullage-fake"), "train", "4"}));
  std::ifstream in(page);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(text.find("class=\"advice-timeline\""), std::string::npos);
  EXPECT_NE(text.find("fits as it is"), std::string::npos);
}

// If the time did not end the program, the test would not end either.
TEST_F(AdviseCommand, AProgramThatGoesOnIsEndedWithAllItsProcesses) {
  const std::string script = folder_.file("slow.sh"), pid_file = folder_.file("pid");
  std::ofstream(script) << "sleep 100000 &\necho $! > " << pid_file << "\nwait\n";
  const nlohmann::json advice = json_of(advise({"--json", "--memory", "8GiB", "--seconds", "2", "--", "sh", script}));
  EXPECT_TRUE(advice["plain"]["fits"].is_null()) << advice;
  EXPECT_NE(advice["notes"].dump().find("the time limit of 2.0 s was reached"), std::string::npos) << advice;

  pid_t sleeper = 0;
  std::ifstream(pid_file) >> sleeper;
  ASSERT_GT(sleeper, 0);
  while (kill(sleeper, 0) == 0) usleep(1000);  // a moment, while it is reaped
}

TEST_F(AdviseCommand, AMessageHasComputedRows) {
  const std::string log = folder_.file("log.txt");
  std::ofstream(log)
      << "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
         "23.69 GiB of which 1.00 GiB is free. Process 1 has 22.00 GiB memory in use. Of the allocated "
         "memory 15.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.\n";
  const nlohmann::json advice = json_of(advise({log, "--json"}));
  EXPECT_EQ(advice["plain"]["fits"], false);

  const nlohmann::json segments = remedy(advice, "expandable_segments");
  ASSERT_FALSE(segments.is_null()) << advice;
  EXPECT_EQ(segments["basis"], "computed");
}

TEST_F(AdviseCommand, WrongUse) {
  const auto refused = [&](const Words& words, const char* text) {
    const Finished end = advise(words);
    EXPECT_EQ(end.exit_code, 2) << end.out;
    EXPECT_NE(end.err.find(text), std::string::npos) << end.err;
    EXPECT_NE(end.err.find("ullage help advise"), std::string::npos) << end.err;
  };
  const std::string fake = folder_.file("ullage-fake");
  refused({}, "nothing to advise on");
  refused({"--memory", "0", "--", fake}, "0 bytes were stated");
  refused({"--memory", "1GiB", "--seconds", "0", "--", fake}, "0 seconds were stated");
  refused({"--memory", "1GiB", "--vary", "batch", "--at", "batch=4", "--", fake}, "{batch}");
  refused({"--device", "rtx3060", "fake"}, "fake computes on the CPU");
  refused({"--memory", "1GiB", "--html", folder_.file("none/page.html"), "--", fake}, "the page cannot be written");
  refused({"--device", "rtx9999", "--", fake}, "not a known card");
  refused({"--device", "rtx3060", "--memory", "1GiB", "--", fake}, "states the card's memory");
  refused({"--device", "cpu", "--memory", "0", "--", fake}, "0 bytes were stated");
  refused({"a.txt", "b.txt"}, "takes one file");
}

TEST_F(AdviseCommand, AFileThatCannotBeRead) { EXPECT_EQ(advise({folder_.file("none.txt")}).exit_code, 3); }

}  // namespace
}  // namespace ullage::cli
