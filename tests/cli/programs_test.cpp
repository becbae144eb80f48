// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/programs.h"
#include "folders.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ullage::cli {
namespace {

TEST(Programs, AreTheExecutablesBesideUllage) {
  const ShippedFolder folder;
  // ullage-locked is left out because it has no x bit (even root cannot execute it then), and ullage-notes.txt because
  // of its extension.
  EXPECT_EQ(shipped_programs(folder.path()), (Words{"fake", "fern"}));
  EXPECT_TRUE(shipped_programs(folder.path() / "nowhere").empty());
}

TEST(Programs, OwnFolderIsThatOfTheExecutable) {
  EXPECT_EQ(own_folder(), std::filesystem::canonical(programs_folder()));
}

TEST(FindPreload, StandsBesideUllageOrInLib) {
  const ShippedFolder folder;
  const std::filesystem::path bin = folder.path() / "bin";
  std::filesystem::create_directory(bin);
  std::filesystem::create_directory(folder.path() / "lib");
  EXPECT_EQ(*find_preload(bin), "");
  std::ofstream(folder.path() / "lib" / "libullage_preload.so");
  EXPECT_EQ(*find_preload(bin), folder.path() / "lib" / "libullage_preload.so");
  std::ofstream(bin / "libullage_preload.so");
  EXPECT_EQ(*find_preload(bin), bin / "libullage_preload.so");
}

TEST(FindPreload, RefusesAPathThatTheLoaderWouldCut) {
  const ShippedFolder folder;
  for (const char* name : {"a b", "a:b"}) {
    const std::filesystem::path bin = folder.path() / name;
    std::filesystem::create_directory(bin);
    EXPECT_TRUE(find_preload(bin).ok());  // there is no library to preload
    std::ofstream(bin / "libullage_preload.so");
    EXPECT_FALSE(find_preload(bin).ok());
  }
}

TEST(FindCommand, LooksThroughPathInOrder) {
  const ShippedFolder folder;
  const std::string path = "/no/such/folder:" + folder.path().string();
  EXPECT_EQ(find_command("ullage-fake", path).file, folder.path() / "ullage-fake");
  EXPECT_EQ(find_command("ullage-fake", path).exit_code, 0);
  EXPECT_EQ(find_command("ullage-none", path).exit_code, 127);
  EXPECT_EQ(find_command("", path).exit_code, 127);
}

TEST(FindCommand, GoesOnBehindOneThatCannotBeExecuted) {
  const ShippedFolder first, second;
  std::filesystem::permissions(second.path() / "ullage-locked", std::filesystem::perms::owner_all);
  const std::string one = first.path().string();
  EXPECT_EQ(find_command("ullage-locked", one).exit_code, 126);
  EXPECT_EQ(find_command("ullage-locked", one + ":" + second.path().string()).file, second.path() / "ullage-locked");
}

TEST(FindCommand, AWordWithASlashIsAFile) {
  const ShippedFolder folder;
  EXPECT_EQ(find_command(folder.file("ullage-fake"), "").exit_code, 0);
  EXPECT_EQ(find_command(folder.file("ullage-locked"), "").exit_code, 126);
  EXPECT_EQ(find_command(folder.path().string(), "").exit_code, 126);
  EXPECT_EQ(find_command(folder.file("none"), "").exit_code, 127);
  EXPECT_EQ(find_command(folder.file("ullage-notes.txt") + "/x", "").exit_code, 127);
}

}  // namespace
}  // namespace ullage::cli
