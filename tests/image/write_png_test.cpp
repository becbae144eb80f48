// SPDX-License-Identifier: Apache-2.0
#include "image/write_png.h"

#include "pictures.h"
#include "whole_picture.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace ullage::image::test {
namespace {

FileBytes pixels(std::uint32_t width, std::uint32_t height) {
  FileBytes rgb;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) rgb.push_back(static_cast<std::uint8_t>(sample(x, y, c) * 37 + x * y));
    }
  }
  return rgb;
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(WritePng, IsReadBackEqual) {
  const TempFolder folder;
  const FileBytes rgb = pixels(41, 23);
  ASSERT_TRUE(write_png(folder.path("a.png"), 41, 23, rgb).ok());
  const Result<Picture> back = decode_whole(folder.path("a.png"), {});
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->width, 41u);
  EXPECT_EQ(back->height, 23u);
  EXPECT_EQ(back->rgb, rgb);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WritePng, TakesThePlaceOfAnOldFile) {
  const TempFolder folder;
  folder.write("a.png", std::string("old"));
  ASSERT_TRUE(write_png(folder.path("a.png"), 2, 1, pixels(2, 1)).ok());
  EXPECT_EQ(decode_whole(folder.path("a.png"), {})->rgb, pixels(2, 1));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WritePng, LeavesOtherNewFilesAlone) {
  const TempFolder folder;
  const std::string other = "a.png.new-" + std::to_string(getpid()) + "-0";
  folder.write(other, std::string("of another thread"));
  ASSERT_TRUE(write_png(folder.path("a.png"), 2, 1, pixels(2, 1)).ok());
  EXPECT_EQ(read_file(folder.path(other)).size(), 17u);
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(WritePng, SaysThatAFolderMayNotBeWritten) {
  const TempFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const Status written = [&] {
    const AsAnybody nobody;
    return write_png(folder.path("a.png"), 2, 1, pixels(2, 1));
  }();
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, Error::Kind::System);
  EXPECT_EQ(written.error().text(),
            folder.path("a.png") +
                ": cannot be written (Permission denied); check the folder, its permissions and its "
                "space");
}

TEST(WritePng, SaysThatAFolderIsMissing) {
  const TempFolder folder;
  const Status written = write_png(folder.path("none/a.png"), 2, 1, pixels(2, 1));
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("No such file or directory"), std::string::npos);
}

TEST(WritePng, KeepsTheOldFileAndRemovesTheNewWhenTheDiskIsFull) {
  const TempFolder folder;
  folder.write("a.png", std::string("old"));
  const FileBytes rgb = pixels(200, 200);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_png(folder.path("a.png"), 200, 200, rgb);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, Error::Kind::System);
  EXPECT_NE(written.error().message.find("File too large"), std::string::npos) << written.error().text();
  EXPECT_EQ(read_file(folder.path("a.png")), (FileBytes{'o', 'l', 'd'}));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WritePng, RemovesTheNewFileWhenItCannotBeRenamed) {
  const TempFolder folder;
  folder.write("a.png/inside", std::string("a folder stands where the file should"));
  ASSERT_FALSE(write_png(folder.path("a.png"), 2, 1, pixels(2, 1)).ok());
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WritePng, TakesTextsOfAnyLength) {
  const TempFolder folder;
  const std::vector<PngText> texts = {{"comment", std::string(100'000, 'a')}, {"empty", ""}};
  ASSERT_TRUE(write_png(folder.path("a.png"), 2, 1, pixels(2, 1), texts).ok());
  EXPECT_EQ(decode_whole(folder.path("a.png"), {})->rgb, pixels(2, 1));
  EXPECT_GT(read_file(folder.path("a.png")).size(), 100'000u);
}

TEST(WritePng, WantsKeywordsThatPngAllows) {
  const TempFolder folder;
  const PngText text{" comment", "a"};
  EXPECT_THROW((void)write_png(folder.path("a.png"), 2, 1, pixels(2, 1), {&text, 1}), ContractError);
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(WritePng, WantsAllPixels) {
  const TempFolder folder;
  EXPECT_THROW((void)write_png(folder.path("a.png"), 2, 2, pixels(2, 1)), ContractError);
  EXPECT_THROW((void)write_png(folder.path("a.png"), 0, 0, {}), ContractError);
  EXPECT_EQ(files_in(folder.path()), 0u);
}

}  // namespace
}  // namespace ullage::image::test
