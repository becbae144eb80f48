// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_folder.h"

#include "spill_test.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>

namespace ullage::store {
namespace {

class SpillFolderTest : public SpillTest {
 protected:
  static std::string message_of(const std::string& spec) {
    const Result<SpillPlace> place = find_spill_place(spec);
    return place.ok() ? "no error" : place.error().text();
  }
};

TEST_F(SpillFolderTest, TakesTheStatedSize) {
  const Result<SpillPlace> place = find_spill_place(folder_ + ":10MiB");
  ASSERT_TRUE(place.ok()) << place.error().text();
  EXPECT_EQ(place->folder, folder_);
  EXPECT_EQ(place->most, 10_MiB);
  EXPECT_EQ(find_spill_place(folder_ + ":10000")->most, 8_KiB) << "whole pages";
}

TEST_F(SpillFolderTest, LeavesAReserveWithoutASize) {
  const Result<SpillPlace> place = find_spill_place(folder_);
  ASSERT_TRUE(place.ok()) << place.error().text();
  struct statvfs room = {};
  ASSERT_EQ(statvfs(folder_.c_str(), &room), 0);
  const Bytes free = Bytes{room.f_bavail} * room.f_frsize;  // a quarter of tolerance, because others use the disk, too
  EXPECT_LT(place->most, free);
  EXPECT_GT(place->most, free / 4 * 3);
  EXPECT_EQ(place->most.count % 4096, 0u);
}

TEST_F(SpillFolderTest, TakesTheLastColonForASizeOnlyIfItIsOne) {
  const std::string odd = folder_ + "/a:b";
  std::filesystem::create_directory(odd);
  EXPECT_EQ(find_spill_place(odd)->folder, odd);
  EXPECT_EQ(find_spill_place(odd + ":1MiB")->folder, odd);
  EXPECT_EQ(find_spill_place(odd + ":1MiB")->most, 1_MiB);
}

TEST_F(SpillFolderTest, MakesTheFolderAbsolute) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const Result<SpillPlace> place = find_spill_place("./:1MiB");
  std::filesystem::current_path(before);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->folder.front(), '/');
}

TEST_F(SpillFolderTest, SaysWhatIsWrong) {
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_EQ(message_of(""), "--spill: no folder is named; write DIR or DIR:SIZE");
  EXPECT_EQ(message_of(":1GiB"), "--spill: no folder is named; write DIR or DIR:SIZE");
  EXPECT_EQ(message_of(folder_ + "/none"), folder_ + "/none: no such folder to spill to; make it or name another");
  EXPECT_EQ(message_of(folder_ + ":20 gigs"),
            folder_ +
                ":20 gigs: no such folder to spill to; make it or name another; if '20 gigs' is meant as a size, "
                "write it like 20GiB");
  EXPECT_EQ(message_of(folder_ + "/file"), folder_ + "/file: is not a folder; name one to spill to");
  EXPECT_EQ(message_of(folder_ + "/file/under"), folder_ + "/file/under: cannot look at the folder: Not a directory");
  EXPECT_EQ(message_of(folder_ + ":0"), folder_ + ": 0 B is too little room to spill to; state more, as in DIR:20GiB");
  const std::string too_much = message_of(folder_ + ":4000000TiB");
  EXPECT_NE(too_much.find(" free, less than the "), std::string::npos) << too_much;
  EXPECT_NE(too_much.find("(4398046511104000000 bytes) stated"), std::string::npos) << too_much;
}

TEST_F(SpillFolderTest, RefusesAFolderThatMayNotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_EQ(message_of(folder_), folder_ + ": no file can be made there (Permission denied); name another folder");
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
}

TEST_F(SpillFolderTest, RefusesMemory) {
  struct statfs system = {};
  if (statfs("/dev/shm", &system) != 0 || static_cast<std::uint32_t>(system.f_type) != TMPFS_MAGIC)
    GTEST_SKIP() << "/dev/shm is no tmpfs here";
  EXPECT_EQ(message_of("/dev/shm:1MiB"),
            "/dev/shm: is memory: spilling there would free nothing; name a folder on a disk with --spill DIR");
}

TEST_F(SpillFolderTest, TakesTheFirstThatWillDo) {
  const Result<SpillPlace> place = first_spill_place({"/no/such/folder", folder_, "/tmp"});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->folder, folder_);
  const Result<SpillPlace> none = first_spill_place({"/no/such/folder", "/dev/null"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().text(),
            "no folder to spill to: /no/such/folder: no such folder to spill to; make it or name another; /dev/null: "
            "is not a folder; name one to spill to; name one on a disk with --spill DIR");
}

TEST_F(SpillFolderTest, PrefersTheTemporaryFolderOfTheUser) {
  const char* before = getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder_.c_str(), 1);
  const Result<SpillPlace> place = default_spill_place();
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->folder, folder_);
}

}  // namespace
}  // namespace ullage::store
