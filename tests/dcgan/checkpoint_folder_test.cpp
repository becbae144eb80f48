// SPDX-License-Identifier: Apache-2.0
#include "dcgan/checkpoint_folder.h"

#include "program/stop_request.h"
#include "program/temp_folder.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

namespace ullage::dcgan {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

class CheckpointFolderTest : public ::testing::Test {
 protected:
  Status write(std::uint64_t step, std::size_t values = 1000) {
    values_.assign(values, static_cast<float>(step));
    const program::TensorToWrite tensor{"w", {read::Dtype::F32, {static_cast<std::int64_t>(values)}}, values_.data()};
    return checkpoints_.write(step, std::span(&tensor, 1), {{"seed", "1"}});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      list.push_back(entry.path().filename());
    std::sort(list.begin(), list.end());
    return list;
  }
  void damage(std::uint64_t step) {
    std::string bytes = read_file(checkpoints_.file_of(step));
    bytes[bytes.size() / 2] ^= 1;
    write_file(checkpoints_.file_of(step), bytes);
  }

  TempFolder folder_;
  CheckpointFolder checkpoints_{folder_.path()};
  std::vector<float> values_;
};

TEST_F(CheckpointFolderTest, KeepsTheNewestAlone) {
  ASSERT_TRUE(write(9));
  ASSERT_TRUE(write(10));
  ASSERT_TRUE(write(1'000'001));
  EXPECT_EQ(names(), std::vector<std::string>{"step-1000001.safetensors"});
  EXPECT_EQ(checkpoints_.steps(), std::vector<std::uint64_t>{1'000'001});
  const auto file = checkpoints_.open_newest();
  ASSERT_TRUE(file) << file.error().text();
}

TEST_F(CheckpointFolderTest, IgnoresAndRemovesWhatWasLeftHalfWritten) {
  ASSERT_TRUE(write(3));
  write_file(folder_ / "step-000004.safetensors.partial", "half");
  EXPECT_EQ(checkpoints_.steps(), std::vector<std::uint64_t>{3});
  ASSERT_TRUE(checkpoints_.open_newest());
  checkpoints_.remove_partial();
  EXPECT_EQ(names(), std::vector<std::string>{"step-000003.safetensors"});
}

TEST_F(CheckpointFolderTest, SaysThatThereIsNone) {
  const auto file = checkpoints_.open_newest();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, Error::Kind::NotFound);
}

TEST_F(CheckpointFolderTest, NamesAnOlderWholeOneWhenTheNewestIsDamaged) {
  ASSERT_TRUE(write(3));
  const std::string third = read_file(checkpoints_.file_of(3));
  ASSERT_TRUE(write(4));
  damage(4);
  const auto file = checkpoints_.open_newest();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, Error::Kind::BadFile);
  EXPECT_NE(file.error().text().find("step-000004.safetensors: damaged"), std::string::npos) << file.error().text();
  EXPECT_NE(file.error().text().find("no older checkpoint"), std::string::npos);

  write_file(checkpoints_.file_of(2), "no checkpoint");
  write_file(checkpoints_.file_of(3), third);
  const auto again = checkpoints_.open_newest();
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().text().find("step-000003.safetensors is whole"), std::string::npos) << again.error().text();
}

// While it lives, no file can grow beyond `bytes`: imitates a full disk at a chosen byte.
class FileSizeLimit final {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  program::StopRequest ignores_the_signal_{""};
  rlimit before_{};
};

TEST_F(CheckpointFolderTest, KeepsTheOldOneWhenTheDiskIsFull) {
  ASSERT_TRUE(write(3));
  const std::string before = read_file(checkpoints_.file_of(3));
  for (rlim_t limit = 0; limit < before.size(); limit += 41) {  // fails at each write in turn
    const FileSizeLimit full(limit);
    const Status status = write(4);
    ASSERT_FALSE(status) << limit;
    EXPECT_EQ(status.error().kind, Error::Kind::System);
    EXPECT_NE(status.error().message.find("File too large; the last checkpoint is"), std::string::npos)
        << status.error().message;
    EXPECT_EQ(names(), std::vector<std::string>{"step-000003.safetensors"});
  }
  EXPECT_EQ(read_file(checkpoints_.file_of(3)), before);
  ASSERT_TRUE(checkpoints_.open_newest());
}

TEST_F(CheckpointFolderTest, LeavesTheOldOneWhenTheNewOneCannotBeNamed) {
  ASSERT_TRUE(write(3));
  std::filesystem::create_directories(checkpoints_.file_of(4) + "/in the way");
  const Status status = write(4);
  ASSERT_FALSE(status);
  EXPECT_TRUE(std::filesystem::exists(checkpoints_.file_of(3)));
  EXPECT_FALSE(std::filesystem::exists(checkpoints_.file_of(4) + ".partial"));
}

}  // namespace
}  // namespace ullage::dcgan
