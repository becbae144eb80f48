// SPDX-License-Identifier: Apache-2.0
// Runs `ullage explain` as a person does: what it reads and writes, and its exit codes. tests/diagnose tests the
// diagnoses.
#include "ullage_process.h"

#include "ullage/base/exit_code.h"

#include "real.h"
#include "small_training.h"

#include <gtest/gtest.h>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMessage =
    "step 12 loss 0.5\n"
    "RuntimeError: CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 2.00 GiB total capacity; 788.51 MiB "
    "already "
    "allocated; 145.93 MiB free; 1.02 GiB reserved in total by PyTorch)\n";

class ExplainCommand : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name), std::ios::binary) << text;
    return folder.file(name);
  }
  std::string message() { return put("train.log", kMessage); }
  static std::string snapshot() { return (data_folder() / "snapshots" / "silmont2000_layout_d.pickle").string(); }

  Finished explain(const Words& words, const std::map<std::string, std::string>& variables = {}) {
    Words all = {folder.file("ullage"), "explain"};
    all.insert(all.end(), words.begin(), words.end());
    return Process(all, variables).finish();
  }

  ShippedFolder folder;
};

TEST_F(ExplainCommand, AnswersOnStdoutAndSaysNothingElse) {
  const Finished end = explain({message()});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.err, "");
  EXPECT_NE(end.out.find("264.00 MiB"), std::string::npos) << end.out;
  EXPECT_EQ(end.out.find('\x1b'), std::string::npos) << "a pipe gets no colors";
}

TEST_F(ExplainCommand, OptionsStandBeforeOrBehindTheFile) {
  const Finished before = explain({"--json", message()}), behind = explain({message(), "--json"});
  EXPECT_EQ(before.out, behind.out);
  const auto json = nlohmann::json::parse(before.out);
  EXPECT_EQ(json["format"], "ullage-diagnosis");
  EXPECT_EQ(json["facts"]["requested_bytes"], 264u << 20);
  EXPECT_EQ(json["source"]["file"], folder.file("train.log"));
}

TEST_F(ExplainCommand, WritesTheAnswerToAFileIfAskedTo) {
  const Finished end = explain({message(), "--out", folder.file("why.txt")});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out, "");
  EXPECT_EQ(end.err, "ullage: wrote " + folder.file("why.txt") + "\n");
  EXPECT_EQ(text_of(folder.file("why.txt")), explain({message()}).out);
  EXPECT_EQ(explain({message(), "--out", message()}).exit_code, to_int(ExitCode::WrongUse));
}

TEST_F(ExplainCommand, ReadsStandardInput) {
  const std::string command = folder.file("ullage") + " explain - --json < " + message();
  const Finished end = Process({"/bin/sh", "-c", command}).finish();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(nlohmann::json::parse(end.out)["source"]["file"], "-");
}

TEST_F(ExplainCommand, OfALogWithoutAnErrorSaysSo) {
  const Finished end = explain({put("fine.log", "epoch 1\nepoch 2\n")});
  EXPECT_EQ(end.exit_code, to_int(ExitCode::BadInput));
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(end.err.starts_with("ullage: " + folder.file("fine.log"))) << end.err;
}

TEST_F(ExplainCommand, OfWhatIsNotReadableEndsWithThree) {
  for (const std::string& file : {put("empty", ""), put("cut.pickle", "\x80\x04\x95"), folder.path().string(),
                                  put("other.json", "{\"a\": 1}"), folder.file("not-there")}) {
    const Finished end = explain({file});
    EXPECT_EQ(end.exit_code, to_int(ExitCode::BadInput)) << file;
    EXPECT_EQ(end.out, "") << file;
    EXPECT_TRUE(end.err.starts_with("ullage: ")) << end.err;
  }
}

TEST_F(ExplainCommand, WritesThePageBesideTheAnswer) {
  const Finished end = explain({snapshot(), "--html", folder.file("page.html")});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_NE(end.out, "");
  EXPECT_EQ(end.err, "ullage: wrote " + folder.file("page.html") + "\n");
  const std::string page = text_of(folder.file("page.html"));
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

TEST_F(ExplainCommand, WritesNeverOntoItsInput) {
  const std::string file = message();
  fs::create_symlink(file, folder.file("link"));
  fs::create_hard_link(file, folder.file("other-name"));
  for (const std::string& out : {file, folder.file("link"), folder.file("other-name"), folder.file("./train.log")}) {
    EXPECT_EQ(explain({file, "--html", out}).exit_code, to_int(ExitCode::WrongUse)) << out;
    EXPECT_EQ(explain({file, "--convert", "perfetto", out}).exit_code, to_int(ExitCode::WrongUse)) << out;
  }
  const std::string command = folder.file("ullage") + " explain - --html " + file + " < " + file;
  EXPECT_EQ(Process({"/bin/sh", "-c", command}).finish().exit_code, to_int(ExitCode::WrongUse));
  EXPECT_EQ(text_of(file), kMessage);
}

TEST_F(ExplainCommand, LeavesAnOldPageAsItIsWhenTheInputIsBad) {
  const std::string page = put("page.html", "old");
  EXPECT_EQ(explain({put("fine.log", "nothing\n"), "--html", page}).exit_code, to_int(ExitCode::BadInput));
  EXPECT_EQ(text_of(page), "old");
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().string().find(".new-"), std::string::npos) << entry.path();
  }
}

TEST_F(ExplainCommand, ConvertsASnapshotAndRefusesAMessage) {
  for (const char* format : {"memory_viz", "perfetto"}) {
    const std::string out = folder.file("converted");
    EXPECT_EQ(explain({snapshot(), "--convert", format, out}).exit_code, 0) << format;
    EXPECT_GT(fs::file_size(out), 100u) << format;
    fs::remove(out);
    const Finished refused = explain({message(), "--convert", format, out});
    EXPECT_EQ(refused.exit_code, to_int(ExitCode::WrongUse)) << format << refused.err;
    EXPECT_FALSE(fs::exists(out)) << format;
  }
  // The converted file is a snapshot, too, and gives the same diagnosis.
  const std::string again = folder.file("again.pickle");
  explain({snapshot(), "--convert", "memory_viz", again});
  auto first = nlohmann::json::parse(explain({snapshot(), "--json"}).out);
  auto second = nlohmann::json::parse(explain({again, "--json"}).out);
  EXPECT_EQ(first["peak"]["bytes"], second["peak"]["bytes"]);
  EXPECT_EQ(first["headline"], second["headline"]);
}

TEST_F(ExplainCommand, ExplainsATraceAndConvertsIt) {
  const std::string trace = put("run.ullage", bytes_of(small_file()));
  const Finished end = explain({trace});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "");
  EXPECT_NE(end.out.find("in aten::convolution_backward of net.2"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("next: ullage explain " + trace + " --html page.html"), std::string::npos) << end.out;
  const auto json = nlohmann::json::parse(explain({trace, "--json"}).out);
  EXPECT_EQ(json["source"]["kind"], "trace");
  for (const char* format : {"memory_viz", "perfetto"}) {
    EXPECT_EQ(explain({trace, "--convert", format, folder.file("converted")}).exit_code, 0) << format;
    EXPECT_GT(fs::file_size(folder.file("converted")), 100u) << format;
  }
  // The trace converted for snapshot viewers is read as a snapshot and has the same peak.
  const std::string again = folder.file("again.pickle");
  explain({trace, "--convert", "memory_viz", again});
  const auto second = nlohmann::json::parse(explain({again, "--json", "--at", "peak"}).out);
  EXPECT_EQ(second["source"]["kind"], "snapshot");
  EXPECT_EQ(second["peak"]["bytes"], json["peak"]["bytes"]);
}

TEST_F(ExplainCommand, TellsOfEachTakeOfATrace) {
  const std::string trace = put("run.ullage", bytes_of(file_of_three()));
  const Finished end = explain({trace});
  for (const char* take : {"--- 1 of 3 ---\nbatch=2: ", "--- 2 of 3 ---\nbatch=3: ", "--- 3 of 3 ---\nbatch=4: "}) {
    EXPECT_NE(end.out.find(take), std::string::npos) << end.out;
  }
  EXPECT_EQ(nlohmann::json::parse(explain({trace, "--json"}).out)["more"].size(), 2u);
}

TEST_F(ExplainCommand, OfATraceKnowsNoDevices) {
  const Finished end = explain({put("run.ullage", bytes_of(small_file())), "--device", "0"});
  EXPECT_EQ(end.exit_code, to_int(ExitCode::WrongUse));
  EXPECT_NE(end.err.find("has nothing about device 0; a trace has one device"), std::string::npos) << end.err;
}

TEST_F(ExplainCommand, OfADamagedTraceEndsWithThree) {
  const std::string whole = bytes_of(small_file());
  const Finished end = explain({put("cut.ullage", whole.substr(0, whole.size() - 9))});
  EXPECT_EQ(end.exit_code, to_int(ExitCode::BadInput));
  EXPECT_TRUE(end.err.starts_with("ullage: " + folder.file("cut.ullage"))) << end.err;
}

TEST_F(ExplainCommand, OfADeviceThatIsNotThereNamesThoseThatAre) {
  const Finished end = explain({snapshot(), "--device", "7"});
  EXPECT_EQ(end.exit_code, to_int(ExitCode::WrongUse));
  EXPECT_NE(end.err.find("has nothing about device 7; it has 0"), std::string::npos) << end.err;
}

TEST_F(ExplainCommand, OfAFailureThatIsNotThereSaysSo) {
  const Finished end = explain({snapshot(), "--at", "oom"});
  EXPECT_EQ(end.exit_code, to_int(ExitCode::WrongUse));
  EXPECT_NE(end.err.find("no request failed in it"), std::string::npos) << end.err;
  EXPECT_EQ(explain({snapshot(), "--at", "end"}).exit_code, 0);
}

TEST_F(ExplainCommand, TellsAsManyOwnersAsAskedFor) {
  const Finished one = explain({snapshot(), "--top", "1"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_NE(one.out.find(" others\n"), std::string::npos) << one.out;
}

TEST_F(ExplainCommand, IsAsciiWhereTheLocaleIsNotUtf8) {
  const Finished end = explain({message()}, {{"LC_ALL", "C"}});
  for (const unsigned char c : end.out) EXPECT_LT(c, 0x80);
  EXPECT_NE(explain({message()}, {{"LC_ALL", "C.UTF-8"}}).out, end.out);
}

}  // namespace
}  // namespace ullage::cli
