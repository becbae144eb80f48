// SPDX-License-Identifier: Apache-2.0
#include "image/image_folder.h"

#include "pictures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace ullage::image::test {
namespace {

using Names = std::vector<std::string>;

void touch(const TempFolder& folder, const Names& names) {
  for (const std::string& name : names) folder.write(name, std::string("x"));
}

// Returns "class:path below the folder" for each picture.
Names listed(const TempFolder& folder, const ImageFolder& found) {
  Names names;
  for (const ImageFile& image : found.images) {
    names.push_back(std::to_string(image.class_index) + ":" + image.path.substr(folder.path().size() + 1));
  }
  return names;
}

Error folder_error_of(const std::string& folder) {
  const Result<ImageFolder> found = list_image_folder(folder);
  if (!found) return found.error();
  ADD_FAILURE() << folder << " was listed";
  return {};
}

TEST(ImageFolder, NumbersClassesInTheirOrder) {
  const TempFolder folder;
  touch(folder, {"tulip/b.png", "rose/z.jpg", "rose/a.jpeg", "Zinnia/1.png"});
  const Result<ImageFolder> found = list_image_folder(folder.path());
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->class_names, (Names{"Zinnia", "rose", "tulip"}));
  EXPECT_EQ(listed(folder, *found), (Names{"0:Zinnia/1.png", "1:rose/a.jpeg", "1:rose/z.jpg", "2:tulip/b.png"}));
}

TEST(ImageFolder, WalksInTheOrderOfWholePaths) {
  const TempFolder folder;
  // Python's sorted(os.walk()) compares whole paths, so '-' (0x2d) goes before '/' (0x2f) and '0' (0x30).
  touch(folder, {"c/a/1.png", "c/a-b/2.png", "c/a0/3.png", "c/z.png", "c/a/deep/4.png"});
  const Result<ImageFolder> found = list_image_folder(folder.path());
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(listed(folder, *found),
            (Names{"0:c/z.png", "0:c/a/1.png", "0:c/a-b/2.png", "0:c/a/deep/4.png", "0:c/a0/3.png"}));
}

TEST(ImageFolder, TakesExtensionsInAnyCase) {
  const TempFolder folder;
  touch(folder, {"c/a.PNG", "c/b.JpG", "c/c.JPEG", "c/d.txt", "c/e.png.bak", "c/.png", "c/png"});
  const Result<ImageFolder> found = list_image_folder(folder.path());
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(listed(folder, *found), (Names{"0:c/.png", "0:c/a.PNG", "0:c/b.JpG", "0:c/c.JPEG"}));
  EXPECT_EQ(found->note(), "");
}

TEST(ImageFolder, CountsWhatItLeavesOut) {
  const TempFolder folder;
  touch(folder, {"c/a.png", "c/b.bmp", "c/c.BMP", "d/d.webp"});
  const Result<ImageFolder> found = list_image_folder(folder.path());
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->class_names, (Names{"c", "d"}));
  EXPECT_EQ(found->images.size(), 1u);
  EXPECT_EQ(found->note(), "left out 3 files of kinds not read: 2 .bmp, 1 .webp");
}

TEST(ImageFolder, TakesAFlatFolder) {
  const TempFolder folder;
  touch(folder, {"flat/b.png", "flat/a.jpg", "flat/notes/read.txt"});
  const Result<ImageFolder> found = list_image_folder(folder.path("flat"));
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->class_names, Names{"flat"});
  EXPECT_EQ(listed(folder, *found), (Names{"0:flat/a.jpg", "0:flat/b.png"}));
}

TEST(ImageFolder, ClassesWinOverPicturesBesideThem) {
  const TempFolder folder;
  touch(folder, {"stray.png", "c/a.png"});
  const Result<ImageFolder> found = list_image_folder(folder.path());
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(listed(folder, *found), Names{"0:c/a.png"});
}

TEST(ImageFolder, FollowsLinksButNotRound) {
  const TempFolder folder;
  touch(folder, {"set/c/a.png", "elsewhere/b.png"});
  std::filesystem::create_directory_symlink(folder.path("elsewhere"), folder.path("set/c/far"));
  std::filesystem::create_directory_symlink(folder.path("set/c"), folder.path("set/c/round"));
  std::filesystem::create_directory_symlink("..", folder.path("set/c/up"));
  std::filesystem::create_directory_symlink(folder.path("elsewhere"), folder.path("set/d"));
  const Result<ImageFolder> found = list_image_folder(folder.path("set"));
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(listed(folder, *found), (Names{"0:set/c/a.png", "0:set/c/far/b.png", "1:set/d/b.png"}));
}

TEST(ImageFolder, SaysThatAFolderIsMissing) {
  const TempFolder folder;
  EXPECT_EQ(folder_error_of(folder.path("none")).kind, Error::Kind::NotFound);
  EXPECT_EQ(folder_error_of(folder.path("none")).text(), folder.path("none") + ": no such folder; check the path");
}

TEST(ImageFolder, SaysThatAFileIsNoFolder) {
  const TempFolder folder;
  touch(folder, {"a.png"});
  EXPECT_EQ(folder_error_of(folder.path("a.png")).kind, Error::Kind::BadArgument);
  EXPECT_EQ(folder_error_of(folder.path("a.png")).message, "is not a folder; name the folder that holds the pictures");
}

TEST(ImageFolder, SaysWhatItLookedForWhenThereIsNothing) {
  const TempFolder folder;
  touch(folder, {"c/a.txt"});
  EXPECT_EQ(
      folder_error_of(folder.path()).message,
      "holds no picture: looked for .png, .jpg and .jpeg in it and in its sub-folders; name a folder with pictures, or "
      "convert them");
  touch(folder, {"c/a.tiff"});
  EXPECT_EQ(
      folder_error_of(folder.path()).message,
      "holds no picture: looked for .png, .jpg and .jpeg in it and in its sub-folders (left out 1 file of a kind not "
      "read: 1 .tiff); name a folder with pictures, or convert them");
}

TEST(ImageFolder, SaysThatASubFolderCannotBeListed) {
  const TempFolder folder;
  touch(folder, {"c/a.png", "c/closed/b.png"});
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder.path("c/closed").c_str(), 0), 0);
  const Result<ImageFolder> found = [&] {
    const AsAnybody nobody;
    return list_image_folder(folder.path());
  }();
  ASSERT_EQ(chmod(folder.path("c/closed").c_str(), 0755), 0);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, Error::Kind::System);
  EXPECT_EQ(found.error().text(),
            folder.path("c/closed") + ": cannot be listed (Permission denied); check its permissions");
}

}  // namespace
}  // namespace ullage::image::test
