// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/file_content.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace ullage::read {
namespace {

class FileContentTest : public testing::Test {
 protected:
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ullage-file-content-" + std::to_string(::getpid()));
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return (folder / name).string();
  }
};

std::string text_in(const FileContent& content) {
  return {reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size()};
}

TEST_F(FileContentTest, GivesAFilesBytes) {
  const std::string text = "one\0two\n" + std::string(100000, 'x');
  const auto content = FileContent::open(write("a", text));
  ASSERT_TRUE(content);
  EXPECT_EQ(text_in(*content), text);
}

TEST_F(FileContentTest, CanBeMoved) {
  auto first = FileContent::open(write("a", "one"));
  auto second = FileContent::open(write("b", "two"));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  *first = std::move(*second);
  const FileContent third = std::move(*first);
  EXPECT_EQ(text_in(third), "two");
}

TEST_F(FileContentTest, AnEmptyFileHasNoBytes) {
  const auto content = FileContent::open(write("a", ""));
  ASSERT_TRUE(content);
  EXPECT_TRUE(content->bytes().empty());
}

TEST_F(FileContentTest, AMissingFileAndAFolderSaySo) {
  const auto missing = FileContent::open((folder / "b").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Error::Kind::NotFound);
  EXPECT_EQ(missing.error().text(), (folder / "b").string() + ": no such file");
  const auto opened = FileContent::open(folder.string());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Error::Kind::BadFile);
  EXPECT_NE(opened.error().message.find("a folder"), std::string::npos);
  const auto below = FileContent::open(write("a", "x") + "/b");
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().kind, Error::Kind::NotFound);
}

TEST_F(FileContentTest, ReadsAPipeToItsEnd) {
  const std::string path = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string text(300000, 'y');
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << text; });
  const auto content = FileContent::open(path);
  writer.join();
  ASSERT_TRUE(content);
  EXPECT_EQ(text_in(*content), text);
}

TEST_F(FileContentTest, RefusesAPipeWithoutEnd) {
  const auto content = FileContent::open("/dev/zero", 1_MiB);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, Error::Kind::BadFile);
  EXPECT_NE(content.error().message.find("the limit is 1048576"), std::string::npos) << content.error().message;
}

TEST_F(FileContentTest, ReadsFilesThatSayTheyAreEmpty) {
  const auto content = FileContent::open("/proc/self/status");
  ASSERT_TRUE(content);
  EXPECT_EQ(text_in(*content).substr(0, 5), "Name:");
}

}  // namespace
}  // namespace ullage::read
