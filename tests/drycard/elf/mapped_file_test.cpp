// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/elf/mapped_file.h"

#include "drycard/drycard_fakes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ullage::drycard {
namespace {

TEST(MappedFile, HasTheBytesOfTheFile) {
  const OwnFolder folder;
  write_content(folder / "a", "four");
  const auto file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes().size(), 4u);
  EXPECT_EQ(std::to_integer<char>(file->bytes()[3]), 'r');
}

TEST(MappedFile, SaysWhatIsNoPlainFile) {
  const OwnFolder folder;
  write_content(folder / "empty", "");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder / "none").error().kind, Error::Kind::NotFound);
  EXPECT_EQ(MappedFile::open(folder / "empty").error().text(), (folder / "empty") + ": the file has 0 bytes");
  EXPECT_EQ(MappedFile::open(folder / "pipe").error().text(), (folder / "pipe") + ": not a plain file");
  EXPECT_EQ(MappedFile::open(folder / ".").error().text(), (folder / ".") + ": not a plain file");
}

}  // namespace
}  // namespace ullage::drycard
