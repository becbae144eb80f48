// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares a text with a file of the repository. If ULLAGE_UPDATE_GOLDEN is set in the environment, writes the file
// instead, so that the change can be reviewed in the diff.

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
