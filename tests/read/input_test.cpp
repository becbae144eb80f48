// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/input.h"

#include "gzip_text.h"
#include "real.h"
#include "small_training.h"

#include <unistd.h>

#include <algorithm>

namespace ullage::read {
namespace {

using namespace std::string_literals;

Result<trace::Input> read(const std::string& content) { return read_input(std::as_bytes(std::span(content)), "x"); }

const std::string kMessage =
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 2.00 GiB total capacity; "
    "1.50 "
    "GiB already allocated; 20.00 MiB free; 1.60 GiB reserved in total by PyTorch)";
const std::string kTrace = R"({"traceEvents": [{"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": 512}}]})";
// The pickle of {"segments": [], "device_traces": [[]]}.
const std::string kSnapshot = "\x80\x04}(\x8c\x08segments]\x8c\rdevice_traces](]eu."s;

TEST(Input, TheKindIsToldByTheContent) {
  const auto log = read("epoch 1\n" + kMessage + "\n");
  ASSERT_TRUE(log) << log.error().text();
  EXPECT_EQ(std::get<trace::Log>(*log).errors.size(), 1u);
  const auto profile = read(kTrace);
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(std::get<trace::Profile>(*profile).devices.size(), 1u);
  const auto snapshot = read(kSnapshot);
  ASSERT_TRUE(snapshot) << snapshot.error().text();
  EXPECT_TRUE(std::holds_alternative<trace::Recording>(*snapshot));
}

TEST(Input, ATraceIsReadAndUnderstood) {
  const auto input = read(bytes_of(file_of_three()));
  ASSERT_TRUE(input) << input.error().text();
  const auto& read = std::get<trace::UnderstoodFile>(*input);
  ASSERT_EQ(read.file.takes.size(), 3u);
  ASSERT_EQ(read.meanings.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.meanings[i].phases.size(), read.file.takes[i].trace.events.size());
    for (const trace::Op& op : read.file.takes[i].trace.ops) EXPECT_NE(op.stack, trace::StackId{});
  }
}

TEST(Input, ADamagedTraceIsRefusedAsATrace) {
  const std::string whole = bytes_of(small_file());
  for (const std::size_t size : {std::size_t{13}, whole.size() / 2, whole.size() - 1}) {
    const auto refused = read(whole.substr(0, size));
    ASSERT_FALSE(refused) << size;
    EXPECT_EQ(refused.error().kind, Error::Kind::BadFile);
    EXPECT_EQ(refused.error().message.find("wanted is a memory snapshot"), std::string::npos)
        << refused.error().message;
  }
}

TEST(Input, GzipIsUnfoldedAndLookedAtAgain) {
  EXPECT_TRUE(std::holds_alternative<trace::Log>(*read(gzip(kMessage))));
  EXPECT_TRUE(std::holds_alternative<trace::Profile>(*read(gzip(kTrace))));
  EXPECT_TRUE(std::holds_alternative<trace::Recording>(*read(gzip(kSnapshot))));
  EXPECT_TRUE(std::holds_alternative<trace::UnderstoodFile>(*read(gzip(bytes_of(small_file())))));
  const auto twice = read(gzip(gzip(kTrace)));
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("gzip data within gzip data"), std::string::npos);
  EXPECT_FALSE(read(gzip("")));
}

TEST(Input, JsonIsALogOnlyWithAnErrorInIt) {
  EXPECT_TRUE(read(R"({"level": "error", "text": ")" + kMessage + "\"}\n"));
  const auto without = read(R"({"batch": 64})");
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message.substr(0, 24), "JSON with no traceEvents");
}

TEST(Input, WideTextIsALog) {
  std::string wide = "\xff\xfe";
  for (const char c : kMessage) wide += {c, '\0'};
  const auto log = read(wide);
  ASSERT_TRUE(log) << log.error().text();
  EXPECT_EQ(std::get<trace::Log>(*log).errors[0].requested, 64_MiB);
}

TEST(Input, SaysWhatWasGivenAndWhatIsWanted) {
  for (const std::string& content : {""s, " \n"s, "PK\x03\x04"s,
                                     "\x7f"
                                     "ELF"s,
                                     "(dp0\n"s, "{'device_traces': []}"s}) {
    const auto refused = read(content);
    ASSERT_FALSE(refused) << content;
    EXPECT_EQ(refused.error().kind, Error::Kind::BadFile);
    EXPECT_EQ(refused.error().where, "x:0");
    EXPECT_NE(refused.error().message.find("wanted is a memory snapshot"), std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(read("").error().message.rfind("an empty file; ", 0), 0u);
}

TEST(Input, ALogWithoutAnErrorIsRefused) {
  const auto refused = read("epoch 1\nepoch 2\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::BadFile);
}

TEST(Input, ReadsAFileOfEachKind) {
  const auto profile = read_input_file((data_folder() / "profiles/adam_cpu_torch_2_13.json.gz").string());
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_TRUE(std::holds_alternative<trace::Profile>(*profile));
  const auto missing = read_input_file("/nowhere/at/all");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Error::Kind::NotFound);
  EXPECT_FALSE(read_input_file(data_folder().string()));
}

TEST(Input, ReadsAllSnapshotsSummariesAndTracesOfOthers) {
  ULLAGE_NEEDS_REAL_FILES();
  for (const char* folder : {"snapshots", "memory_summary", "kineto"})
    for (const auto& file : std::filesystem::directory_iterator(real_folder() / folder)) {
      const auto input = read_input_file(file.path().string());
      EXPECT_TRUE(input) << input.error().text();
    }
}

}  // namespace
}  // namespace ullage::read
