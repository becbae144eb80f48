// SPDX-License-Identifier: Apache-2.0
#include "image/decode.h"

#include "pictures.h"
#include "whole_picture.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ullage::image::test {
namespace {

Error error_of(const std::string& path) {
  const Result<Picture> picture = decode_whole(path, {});
  if (!picture) return picture.error();
  ADD_FAILURE() << path << " was decoded";
  return {};
}

TEST(Decode, RefusesATextNamedPng) {
  const TempFolder folder;
  const Error error = error_of(folder.write("a.png", std::string("hello, world\n")));
  EXPECT_EQ(error.kind, Error::Kind::BadFile);
  EXPECT_EQ(error.text(),
            folder.path("a.png") +
                ": is not a PNG or JPEG: it starts with the bytes 68 65 6c 6c; replace it or take it out of the "
                "folder");
}

TEST(Decode, RefusesAnEmptyFile) {
  const TempFolder folder;
  const Error error = error_of(folder.write("a.png", std::string()));
  EXPECT_EQ(error.kind, Error::Kind::BadFile);
  EXPECT_EQ(error.message, "is not a PNG or JPEG: it is empty; replace it or take it out of the folder");
}

TEST(Decode, SaysThatAFileIsMissing) {
  const TempFolder folder;
  EXPECT_EQ(error_of(folder.path("a.png")).kind, Error::Kind::NotFound);
  EXPECT_EQ(error_of(folder.path("a.png")).text(), folder.path("a.png") + ": no such file; check the path");
}

TEST(Decode, RefusesFoldersAndPipesWithoutWaiting) {
  const TempFolder folder;
  EXPECT_EQ(error_of(folder.path()).text(), folder.path() + ": is not a regular file; name a PNG or JPEG");
  ASSERT_EQ(mkfifo(folder.path("pipe.png").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder.path("pipe.png")).kind, Error::Kind::BadFile);
}

TEST(Decode, SaysThatAFileMayNotBeRead) {
  const TempFolder folder;
  const std::string path = folder.write("a.png", std::string("x"));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const Result<Picture> picture = [&] {
    const AsAnybody nobody;
    return decode_whole(path, {});
  }();
  ASSERT_FALSE(picture.ok());
  EXPECT_EQ(picture.error().kind, Error::Kind::System);
  EXPECT_EQ(picture.error().message, "cannot be opened (Permission denied); check its permissions");
}

TEST(Decode, TellsKindsByTheirFirstBytes) {
  const TempFolder folder;
  make_jpeg(folder.path("jpeg.png"), {.size = {9, 7}});
  make_png(folder.path("png.jpg"), {.size = {9, 7}});
  EXPECT_EQ(decode_whole(folder.path("jpeg.png"), {})->rgb.size(), 9u * 7 * 3);
  EXPECT_EQ(decode_whole(folder.path("png.jpg"), {})->rgb.size(), 9u * 7 * 3);
}

}  // namespace
}  // namespace ullage::image::test
