// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/replace_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace ullage {
namespace {

namespace fs = std::filesystem;

struct ReplaceFile : testing::Test {
  void SetUp() override { fs::create_directories(folder), std::ofstream(path) << "old"; }
  void TearDown() override { fs::remove_all(folder); }
  std::string text() const {
    std::string word;
    std::ifstream(path) >> word;
    return word;
  }
  auto files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
  const fs::path folder = fs::path(testing::TempDir()) / ("replace_file." + name_before(""));
  const std::string path = folder / "file";
};

TEST_F(ReplaceFile, PutsTheNewFileInPlaceOfTheOldOne) {
  EXPECT_TRUE(replace_file(path, [](std::ostream& out) {
    out << "new";
    return success();
  }));
  EXPECT_EQ(text(), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(ReplaceFile, KeepsTheOldFileIfTheWriterFails) {
  const Status written = replace_file(path, [](std::ostream& out) -> Status {
    out << "new";
    return Error{Error::Kind::BadFile, "no", "here"};
  });
  EXPECT_EQ(written.error().message, "no");
  EXPECT_EQ(text(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(ReplaceFile, KeepsTheOldFileIfTheWriterThrows) {
  EXPECT_THROW(static_cast<void>(replace_file(path,
                                              [](std::ostream& out) -> Status {
                                                out << "new";
                                                throw std::runtime_error("no");
                                              })),
               std::runtime_error);
  EXPECT_EQ(text(), "old");
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace ullage
