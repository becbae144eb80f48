// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files for these tests: the libraries of fakes/, and a folder for what a test makes.

#include "ullage/drycard/elf/elf_file.h"
#include "ullage/drycard/elf/stub_library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::drycard {

inline std::string fake(const std::string& path) { return std::string(ULLAGE_FAKES) + "/" + path; }

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_content(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}
inline std::span<const std::byte> bytes_of(std::string_view content) { return std::as_bytes(std::span(content)); }

// A temporary folder of the test, removed at the end.
class OwnFolder final {
 public:
  OwnFolder() {
    std::string name = std::filesystem::temp_directory_path() / "ullage-drycard-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Returns what a shell command prints to stdout and stderr.
inline std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* const pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), got);
  ::pclose(pipe);
  return output;
}

// Returns "name@version(file)" for each symbol, with "weak " or "hidden " before it, sorted.
inline std::vector<std::string> texts_of(const Result<std::vector<ElfSymbol>>& symbols) {
  std::vector<std::string> texts;
  for (const auto& symbol : symbols.value()) {
    std::string text = std::string(symbol.weak ? "weak " : "") + (symbol.hidden ? "hidden " : "");
    text += symbol.name;
    if (!symbol.version.empty()) text += "@" + std::string(symbol.version);
    if (!symbol.version_file.empty()) text += "(" + std::string(symbol.version_file) + ")";
    texts.push_back(text);
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}
inline bool has_text(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace ullage::drycard
