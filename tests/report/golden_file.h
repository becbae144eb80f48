// SPDX-License-Identifier: Apache-2.0
#pragma once

// A text held against a file of the repository. With ULLAGE_UPDATE_GOLDEN set in the environment the file is written
// anew (and the change read in the diff) instead.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ullage {

inline void expect_golden(const std::filesystem::path& file, const std::string& text) {
  if (std::getenv("ULLAGE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << text;
    return;
  }
  std::ifstream in(file);
  ASSERT_TRUE(in.good()) << file << " is missing; ULLAGE_UPDATE_GOLDEN=1 writes it";
  std::ostringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << file;
}

}  // namespace ullage
