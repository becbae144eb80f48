// SPDX-License-Identifier: Apache-2.0
#include "program/output_files.h"

#include "program/temp_folder.h"

namespace ullage::program {
namespace {

using test::read_file;
using test::TempFolder;

TEST(WriteWholeFile, LeavesTheOldOneWhenItFails) {
  const TempFolder folder;
  ASSERT_TRUE(write_whole_file(folder / "a", "one"));
  std::filesystem::create_directory(folder / "a.new");
  EXPECT_FALSE(write_whole_file(folder / "a", "two"));
  EXPECT_EQ(read_file(folder / "a"), "one");
}

}  // namespace
}  // namespace ullage::program
