// SPDX-License-Identifier: Apache-2.0
// Runs `ullage explain -- COMMAND` as a person does. What torch adds is tested in
// tests/drycard/test_explain_command.py, the kernel's kill in kernel_kill_test.cpp.
#include "ullage_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRefusal =
    "RuntimeError: CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 2.00 GiB total capacity; 788.51 MiB "
    "already allocated; 145.93 MiB free; 1.02 GiB reserved in total by PyTorch)";

class ExplainedRun : public testing::Test {
 protected:
  // Runs `ullage explain OPTIONS --keep <folder>/kept -- sh -c SCRIPT`; the script finds the message in $MESSAGE.
  Finished explain(const std::string& script, const Words& options = {}) {
    return Process(words(script, options), {{"MESSAGE", kRefusal}}).finish();
  }
  Words words(const std::string& script, const Words& options = {}) {
    Words all = {folder_.file("ullage"), "explain"};
    if (options.empty() || options.front() != "--keep") all.insert(all.end(), {"--keep", folder_.file("kept")});
    all.insert(all.end(), options.begin(), options.end());
    for (const char* word : {"--", "/bin/sh", "-c"}) all.push_back(word);
    all.push_back(script);
    return all;
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    if (!fs::exists(folder_.file("kept"))) return files;
    for (const auto& entry : fs::directory_iterator(folder_.file("kept"))) files.push_back(entry.path());
    return files;
  }
  static std::string text_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  ShippedFolder folder_;
};

TEST_F(ExplainedRun, SaysNothingAndWritesNothingWhereNothingFails) {
  const Finished end = explain("printf 'one\\r\\n\\001two'; printf three >&2");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out, "one\r\n\001two");
  EXPECT_EQ(end.err, "three");
  EXPECT_FALSE(fs::exists(folder_.file("kept")));
}

TEST_F(ExplainedRun, ExplainsTheErrorThatEndsTheCommand) {
  for (const char* descriptor : {"1", "2"}) {
    const Finished end = explain(std::string("echo step 1; echo \"$MESSAGE\" >&") + descriptor + "; exit 3");
    EXPECT_EQ(end.exit_code, 3) << "the command's own";
    const std::string own = std::string("step 1\n") + (*descriptor == '1' ? kRefusal + std::string("\n") : "");
    EXPECT_EQ(end.out, own) << "stdout is the command's";
    EXPECT_NE(end.err.find("GPU 0 (2.00 GiB) refused 264.00 MiB"), std::string::npos) << end.err;
    EXPECT_NE(end.err.find("ullage: wrote " + folder_.file("kept") + "/oom-"), std::string::npos) << end.err;
    ASSERT_EQ(kept().size(), 1u);
    EXPECT_NE(text_of(kept().front()).find(kRefusal), std::string::npos);
    fs::remove_all(folder_.file("kept"));
  }
}

TEST_F(ExplainedRun, SaysNothingOfAnErrorThatTheCommandSurvived) {
  const Finished end = explain("echo \"$MESSAGE\"");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.err, "");
  EXPECT_TRUE(kept().empty());
}

TEST_F(ExplainedRun, OfAnotherFailureSaysThatItWasNotMemory) {
  const Finished end = explain("echo 'KeyError: 3' >&2; exit 7");
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_EQ(end.err, "KeyError: 3\nullage: sh ended with exit code 7; nothing says that memory ran out\n");
  EXPECT_TRUE(kept().empty());
}

TEST_F(ExplainedRun, OfAnothersSignalNineSaysThatNothingWasCounted) {
  const Finished end = explain("kill -9 $$");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_NE(end.err.find("ullage: signal 9 came from elsewhere"), std::string::npos) << end.err;
  EXPECT_TRUE(kept().empty());
}

TEST_F(ExplainedRun, OfThisMachinesMemorySaysHowMuchTheCommandHeld) {
  const Finished end = explain("echo MemoryError >&2; exit 1");
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.err.find("ullage: sh ended with exit code 1; the most it held was "), std::string::npos) << end.err;
  EXPECT_NE(end.err.find(", the machine gives "), std::string::npos) << end.err;
}

TEST_F(ExplainedRun, WritesTheAnswerAndThePageWhereAskedTo) {
  const Words options = {"--json", "--out", folder_.file("why.json"), "--html", folder_.file("page.html")};
  const Finished end = explain("echo \"$MESSAGE\" >&2; exit 1", options);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.out, "");
  const auto json = folder_.json("why.json");
  EXPECT_EQ(json["format"], "ullage-diagnosis");
  EXPECT_EQ(json["facts"]["requested_bytes"], 264u << 20);
  EXPECT_EQ(json["source"]["file"], kept().front().string());
  EXPECT_TRUE(text_of(folder_.file("page.html")).starts_with("<!doctype html>"));
  EXPECT_NE(end.err.find("ullage: wrote " + folder_.file("why.json")), std::string::npos) << end.err;
  fs::remove(folder_.file("why.json"));
  EXPECT_EQ(explain("true", options).exit_code, 0);
  EXPECT_FALSE(fs::exists(folder_.file("why.json")));
}

TEST_F(ExplainedRun, KeepsTheOrderOfOutputsThatGoToOnePlace) {
  const Words all = words("for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i >&2; done");
  std::string line = "exec 2>&1;";
  for (const std::string& word : all) line += " '" + word + "'";
  const Finished end = Process({"/bin/sh", "-c", line}).finish();
  std::string both;
  for (int i = 1; i <= 8; ++i) both += "out " + std::to_string(i) + "\nerr " + std::to_string(i) + "\n";
  EXPECT_EQ(end.out, both);
}

TEST_F(ExplainedRun, CopiesMoreThanItKeeps) {
  const Finished end = explain("head -c 40000000 /dev/zero; echo; echo \"$MESSAGE\" >&2; exit 1");
  EXPECT_EQ(end.out.size(), 40'000'001u);
  EXPECT_NE(end.err.find("refused 264.00 MiB"), std::string::npos);
  ASSERT_EQ(kept().size(), 1u);
  EXPECT_LE(fs::file_size(kept().front()), 17u << 20);
}

// A process that the command left behind ends only after `ullage` has ended. Its output still arrives.
TEST_F(ExplainedRun, DoesNotWaitForAProcessThatIsLeftBehind) {
  const std::string gone = folder_.file("gone");
  const std::string left = "(while [ ! -e " + gone + " ]; do sleep 0.02; done; echo late) & echo early";
  std::string line;
  for (const std::string& word : words(left)) line += "'" + word + "' ";
  EXPECT_EQ(Process({"/bin/sh", "-c", line + "; touch " + gone}).finish().out, "early\nlate\n");
}

TEST_F(ExplainedRun, EndsTheCommandIfNobodyReads) {
  std::string line;
  for (const std::string& word : words("while :; do echo y; done")) line += "'" + word + "' ";
  const Finished end = Process({"/bin/sh", "-c", line + "| head -c 1"}).finish();
  EXPECT_EQ(end.out, "y");
}

TEST_F(ExplainedRun, PassesSignalsOn) {
  Process waits({folder_.file("ullage"), "explain", "--", folder_.file("ullage-fake"), "wait"});
  waits.until("ready");
  waits.send(SIGTERM);
  const Finished end = waits.finish();
  EXPECT_EQ(end.exit_code, 128 + SIGTERM);
  EXPECT_EQ(end.err, "") << "a person ended it";
}

TEST_F(ExplainedRun, GivesTheCommandNoLedger) { EXPECT_EQ(explain("echo ${ULLAGE_LEDGER:-none}").out, "none\n"); }

TEST_F(ExplainedRun, ChecksItsOptionsBeforeTheStart) {
  const auto refused = [&](const Words& options, int code, const std::string& why) {
    const Finished end = explain("touch " + folder_.file("ran"), options);
    EXPECT_EQ(end.exit_code, code) << end.err;
    EXPECT_NE(end.err.find(why), std::string::npos) << end.err;
    EXPECT_FALSE(fs::exists(folder_.file("ran")));
  };
  refused({"--keep", folder_.file("fifo")}, 2, "is not a folder");
  refused({"--out", folder_.path().string()}, 2, "the answer must be a file");
  refused({"--out", folder_.file("a"), "--html", folder_.file("a")}, 2,
          "the answer cannot be written to the same file as the page");
  refused({"--events", "-1"}, 2, "--events");
  const Finished file = Process({folder_.file("ullage"), "explain", "--events", "5", "a.log"}).finish();
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_NE(file.err.find("--events is for a command"), std::string::npos) << file.err;
}

TEST_F(ExplainedRun, OfAFilesNameSaysHowToExplainIt) {
  std::ofstream(folder_.file("train.log")) << kRefusal;
  const Finished end = Process({folder_.file("ullage"), "explain", "--", folder_.file("train.log")}).finish();
  EXPECT_EQ(end.exit_code, 126);
  EXPECT_NE(end.err.find("to explain that file write: ullage explain " + folder_.file("train.log")), std::string::npos)
      << end.err;
  EXPECT_EQ(Process({folder_.file("ullage"), "explain", "--", "no-such-command"}).finish().exit_code, 127);
}

// A terminal stays one, of the same size; what the command prints passes unchanged.
TEST_F(ExplainedRun, ATerminalStaysOne) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(ours, 0);
  ASSERT_EQ(::grantpt(ours), 0);
  ASSERT_EQ(::unlockpt(ours), 0);
  const std::string name = ::ptsname(ours);
  winsize size = {};
  size.ws_col = 133, size.ws_row = 44;
  const int terminal = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  Words all = words("test -t 1 && test -t 2 && stty size <&1 && echo end");
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(terminal, 1);
    ::dup2(terminal, 2);
    ::execv(argv[0], argv.data());
    ::_exit(98);
  }
  ::close(terminal);
  std::string out;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(ours, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  ::close(ours);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(out, "44 133\r\nend\r\n") << "one \\r a line: the real terminal's";
}

}  // namespace
}  // namespace ullage::cli
