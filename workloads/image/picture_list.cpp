// SPDX-License-Identifier: Apache-2.0
#include "image/picture_list.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace ullage::image {
namespace {

namespace fs = std::filesystem;

bool has_known_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

}  // namespace

Result<std::vector<std::string>> list_pictures(const std::string& input) {
  std::error_code code;
  const auto status = fs::status(input, code);
  if (!fs::exists(status)) {
    return Error{Error::Kind::NotFound, "no such file or folder; name a picture, or a folder of them, with --input",
                 input};
  }
  if (!fs::is_directory(status)) return std::vector{input};
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(input, code)) {
    if (entry.is_regular_file(code) && has_known_ending(entry.path())) paths.push_back(entry.path().string());
  }
  if (code) return Error{Error::Kind::System, "cannot be listed: " + code.message(), input};
  if (paths.empty()) return Error{Error::Kind::NotFound, "no .png, .jpg or .jpeg in this folder", input};
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace ullage::image
