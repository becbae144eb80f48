// SPDX-License-Identifier: Apache-2.0
// libullage_preload.so in LD_PRELOAD of real processes, with a torch and a runtime made for these tests.
#include "folders.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ullage::cli {
namespace {

constexpr const char* kPlainOutput = "program\nmain\n";
constexpr const char* kUnderRuntime = "runtime after torch\nprogram\nmain\n";

std::string fake(const std::string& name) { return std::string(ULLAGE_FAKES) + "/" + name; }

// Runs the command with the preload library of `folder`, and with the variable that names the ledger in a run. There is
// no ledger: the runtime that is made for these tests opens none.
Finished run(const Words& words, const std::string& folder = "lib") {
  return Process(words, {{"LD_PRELOAD", fake(folder) + "/libullage_preload.so"}, {"ULLAGE_LEDGER", "100:1"}}).finish();
}

TEST(Preload, BringsTheRuntimeInAfterTorchAndBeforeTheProgram) {
  const Finished end = run({fake("same/torch_program")});
  EXPECT_EQ(end.out, kUnderRuntime);
  EXPECT_EQ(end.err, "");
  EXPECT_EQ(end.exit_code, 0);
}

TEST(Preload, FindsTheRuntimeInLibBesideItsOwnFolder) {
  EXPECT_EQ(run({fake("same/torch_program")}, "bin").out, kUnderRuntime);
}

TEST(Preload, ReachesAProgramThatAShellStarts) {
  EXPECT_EQ(run({"/bin/sh", "-c", fake("same/torch_program") + "; echo $?"}).out, std::string(kUnderRuntime) + "0\n");
}

TEST(Preload, LeavesALinkedProgramItsOneRuntime) {
  const Finished end = run({fake("same/linked_program")});
  EXPECT_EQ(end.out, kUnderRuntime);
  EXPECT_EQ(end.err, "");
}

TEST(Preload, DoesNothingOutsideARun) {
  for (const char* ledger : {"", "unset"}) {
    std::map<std::string, std::string> variables = {{"LD_PRELOAD", fake("lib/libullage_preload.so")}};
    if (*ledger == '\0') variables["ULLAGE_LEDGER"] = "";
    EXPECT_EQ(Process({fake("same/torch_program")}, variables).finish().out, kPlainOutput) << ledger;
  }
}

TEST(Preload, LeavesATorchOfAnotherVersionAloneAndSaysSo) {
  const Finished end = run({fake("other/torch_program")});
  EXPECT_EQ(end.out, kPlainOutput);
  EXPECT_EQ(
      end.err,
      "ullage: this program runs torch 9.8.6, Ullage's runtime was built against 9.8.7; build Ullage against torch "
      "9.8.6; this program runs without a budget\n");
  EXPECT_EQ(end.exit_code, 0);
}

TEST(Preload, LeavesATorchThatDoesNotSayItsVersionAlone) {
  const Finished end = run({fake("old/torch_program")});
  EXPECT_EQ(end.out, kPlainOutput);
  EXPECT_NE(end.err.find("this program runs torch older than 2.7, Ullage's runtime was built against 9.8.7"),
            std::string::npos)
      << end.err;
}

TEST(Preload, SaysThatTheRuntimeIsMissing) {
  const Finished end = run({fake("same/torch_program")}, "lonely/inner");
  EXPECT_EQ(end.out, kPlainOutput);
  EXPECT_EQ(end.err,
            "ullage: libullage_torch.so is not in the folder of libullage_preload.so; install both together; this "
            "program runs without a budget\n");
}

TEST(Preload, LeavesProgramsWithoutTorchAsTheyAre) {
  for (const Words& words : {Words{"/bin/sh", "-c", "echo a; echo b >&2; exit 3"}, Words{"/usr/bin/env", "true"}}) {
    const Finished with = run(words);
    const Finished without = Process(words).finish();
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.err, without.err);
    EXPECT_EQ(with.exit_code, without.exit_code);
  }
}

// Every process under `ullage run` gets the library, so it must make the loader map nothing but itself.
TEST(Preload, BringsNoOtherLibraryIntoAProgramWithoutTorch) {
  for (const std::string& folder : {libraries_folder().string(), fake("lib")}) {
    const std::string library = folder + "/libullage_preload.so";
    const std::map<std::string, std::string> variables = {{"LD_PRELOAD", library}, {"ULLAGE_LEDGER", "100:1"}};
    const std::string maps = Process({"/bin/cat", "/proc/self/maps"}, variables).finish().out;
    EXPECT_NE(maps.find(library), std::string::npos) << maps;
    for (const char* name : {"libstdc++", "libgcc_s", "libm.", "libasan", "libullage_torch"}) {
      EXPECT_EQ(maps.find(name), std::string::npos) << maps;
    }
  }
}

}  // namespace
}  // namespace ullage::cli
