// SPDX-License-Identifier: Apache-2.0
#include "image/image_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace ullage::image {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kRead = {".png", ".jpg", ".jpeg"};
constexpr std::array<std::string_view, 6> kNotRead = {".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Returns the extension of the list that `name` ends in, or "". As in torchvision, the name may be just ".png".
template <std::size_t N>
std::string_view ending(const std::string& name, const std::array<std::string_view, N>& list) {
  for (const std::string_view extension : list) {
    if (name.size() < extension.size()) continue;
    const std::string_view tail = std::string_view(name).substr(name.size() - extension.size());
    if (std::equal(tail.begin(), tail.end(), extension.begin(), [](char a, char b) { return to_lower(a) == b; })) {
      return extension;
    }
  }
  return {};
}

struct Entries {
  std::vector<std::string> folders, files;  // sorted by bytes, which is Python's order for UTF-8
};

Error cannot_list(const std::string& folder, const std::error_code& why) {
  return {Error::Kind::System, "cannot be listed (" + why.message() + "); check its permissions", folder};
}

Result<Entries> list(const std::string& folder) {
  Entries entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code dangling;
    (it->is_directory(dangling) ? entries.folders : entries.files).push_back(it->path().filename().string());
  }
  if (failed) return cannot_list(folder, failed);
  std::sort(entries.folders.begin(), entries.folders.end());
  std::sort(entries.files.begin(), entries.files.end());
  return entries;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.back() == '/' ? folder + name : folder + "/" + name;
}

// Returns true if `folder` is a link to one of the folders that its own path goes through.
bool goes_round(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_symlink(folder, ignored)) return false;
  for (std::size_t end = folder.rfind('/'); end != std::string::npos && end > 0; end = folder.rfind('/', end - 1)) {
    if (fs::equivalent(folder.substr(0, end), folder, ignored)) return true;
  }
  return false;
}

// Adds the pictures among `files`, which are directly in `folder`.
void take_files(const std::string& folder, const std::vector<std::string>& files, std::uint32_t class_index,
                ImageFolder& to) {
  for (const std::string& name : files) {
    if (!ending(name, kRead).empty()) {
      to.images.push_back({join(folder, name), class_index});
    } else if (const std::string_view extension = ending(name, kNotRead); !extension.empty()) {
      ++to.left_out[std::string(extension)];
    }
  }
}

// Visits folders as sorted(os.walk(folder, followlinks=True)) does: in the order of their whole paths, a-b before a/b.
Status walk(const std::string& folder, std::uint32_t class_index, ImageFolder& to) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  std::vector<std::string> ahead = {folder};
  while (!ahead.empty()) {
    const std::string at = std::move(ahead.back());
    ahead.pop_back();
    ULLAGE_TRY_VALUE(Entries entries, list(at));
    for (const std::string& name : entries.folders) {
      std::string below = join(at, name);
      if (!goes_round(below)) ahead.push_back(std::move(below));
    }
    found.emplace_back(at, std::move(entries.files));
  }
  std::sort(found.begin(), found.end());
  for (const auto& [at, files] : found) take_files(at, files, class_index, to);
  return success();
}

Error nothing_found(const std::string& folder, const ImageFolder& found) {
  std::string message = "holds no picture: looked for .png, .jpg and .jpeg in it and in its sub-folders";
  if (!found.left_out.empty()) message += " (" + found.note() + ")";
  return {Error::Kind::BadArgument, message + "; name a folder with pictures, or convert them", folder};
}

std::string name_of(const std::string& folder) {
  std::error_code failed;
  const fs::path whole = fs::canonical(folder, failed);
  return failed ? folder : whole.filename().string();
}

Status check_folder(const std::string& folder) {
  std::error_code failed;
  const fs::file_status status = fs::status(folder, failed);
  if (status.type() == fs::file_type::not_found) {
    return Error{Error::Kind::NotFound, "no such folder; check the path", folder};
  }
  if (status.type() == fs::file_type::none) return cannot_list(folder, failed);
  if (status.type() != fs::file_type::directory) {
    return Error{Error::Kind::BadArgument, "is not a folder; name the folder that holds the pictures", folder};
  }
  return success();
}

}  // namespace

std::string ImageFolder::note() const {
  std::uint64_t sum = 0;
  std::string kinds;
  for (const auto& [extension, count] : left_out) {
    sum += count;
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + extension;
  }
  if (sum == 0) return "";
  return "left out " + std::to_string(sum) + (sum == 1 ? " file of a kind" : " files of kinds") + " not read: " + kinds;
}

Result<ImageFolder> list_image_folder(const std::string& folder) {
  ULLAGE_TRY(check_folder(folder));
  ULLAGE_TRY_VALUE(Entries top, list(folder));
  ImageFolder found;
  found.class_names = top.folders;
  for (std::uint32_t i = 0; i < top.folders.size(); ++i) {
    ULLAGE_TRY(walk(join(folder, top.folders[i]), i, found));
  }
  if (!found.images.empty()) return found;
  take_files(folder, top.files, 0, found);
  found.class_names = {name_of(folder)};
  if (found.images.empty()) return nothing_found(folder, found);
  return found;
}

}  // namespace ullage::image
