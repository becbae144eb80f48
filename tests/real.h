// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recordings made by other people. Large ones lie beside the checkout (../shared/real) on machines that have them;
// small copies are in tests/data.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "folders.h"

namespace ullage {

inline std::filesystem::path real_folder() { return tests_folder() / "../../shared/real"; }
inline std::filesystem::path data_folder() { return tests_folder() / "data"; }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace ullage

// Skips the test, with the reason, if the folder of large recordings does not exist.
#define ULLAGE_NEEDS_REAL_FILES() \
  if (!std::filesystem::exists(ullage::real_folder())) GTEST_SKIP() << "no folder ../shared/real beside the checkout"
