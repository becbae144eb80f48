// SPDX-License-Identifier: Apache-2.0
#include "dcgan/run_folder.h"

#include "program/temp_folder.h"

#include <cmath>

namespace ullage::dcgan {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

std::string prepared(const std::string& path, bool resume) {
  const Status status = RunFolder(path).prepare(resume);
  return status ? "" : status.error().text();
}

TEST(RunFolder, IsMadeAndTriedBeforeTheWork) {
  const TempFolder folder;
  EXPECT_EQ(prepared(folder / "a/b", false), "");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/checkpoint"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "a/b"), {}), 1) << "no trial file is left";
}

TEST(RunFolder, SaysWhyNothingCanBeWritten) {
  const TempFolder folder;
  write_file(folder / "file", "");
  EXPECT_EQ(prepared(folder / "file/out", false),
            (folder / "file/out") + ": cannot write there: Not a directory; choose another --out");
  EXPECT_EQ(prepared("/proc/out", false),
            "/proc/out: cannot write there: No such file or directory; choose another --out");
}

TEST(RunFolder, DoesNotTakeAFolderThatHoldsARun) {
  const TempFolder folder;
  for (const char* file : {"losses.jsonl", "run.json", "checkpoint/step-000001.safetensors"}) {
    const std::string out = folder / std::string(1, file[0]);
    std::filesystem::create_directories(out + "/checkpoint");
    write_file(out + "/" + file, "x");
    EXPECT_NE(prepared(out, false).find("add --resume or choose another --out"), std::string::npos) << file;
  }
  EXPECT_EQ(prepared(folder / "c", true), "");
  EXPECT_NE(prepared(folder / "l", true).find("no checkpoint to resume from"), std::string::npos);
}

TEST(LossLog, WritesOneObjectAStepAtOnce) {
  const TempFolder folder;
  auto log = LossLog::open(folder / "l", 0);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(1, {1.5, 0.1f, 0.25, 0, std::nan("")}));
  EXPECT_EQ(
      read_file(folder / "l"),
      "{\"step\": 1, \"loss_d\": 1.5, \"loss_g\": 0.100000001, \"d_x\": 0.25, \"d_g_z1\": 0, \"d_g_z2\": null}\n");
}

TEST(LossLog, DropsTheLinesPastTheCheckpoint) {
  const TempFolder folder;
  const std::string two = "{\"step\": 1, \"loss_d\": 1}\n{\"step\": 2, \"loss_d\": 1}\n";
  for (const char* rest : {"", "{\"step\": 3, \"loss_d\": 1}\n", "{\"st", "{\"step\": 3}\n{\"step\": 4"}) {
    write_file(folder / "l", two + rest);
    auto log = LossLog::open(folder / "l", 2);
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->append(3, {}));
    EXPECT_EQ(read_file(folder / "l").substr(0, two.size() + 12), two + "{\"step\": 3, ") << rest;
    EXPECT_FALSE(std::filesystem::exists(folder / "l.new"));
  }
}

TEST(StepName, HasSixDigitsOrMore) {
  EXPECT_EQ(step_name(7), "000007");
  EXPECT_EQ(step_name(12345678), "12345678");
  EXPECT_EQ(RunFolder("out").sample(100), "out/samples-000100.png");
}

}  // namespace
}  // namespace ullage::dcgan
