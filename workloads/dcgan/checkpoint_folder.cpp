// SPDX-License-Identifier: Apache-2.0
#include "dcgan/checkpoint_folder.h"

#include "dcgan/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

namespace ullage::dcgan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kPartial = ".safetensors.partial";

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

std::optional<std::uint64_t> step_in(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

Result<program::SafetensorsFile> open_whole(const std::string& path) {
  auto file = program::SafetensorsFile::open(path);
  if (!file) return file;
  ULLAGE_TRY(file->verify());
  return file;
}

}  // namespace

std::vector<std::uint64_t> CheckpointFolder::steps() const {
  std::vector<std::uint64_t> steps;
  for (const std::string& name : names_in(path_)) {
    if (const auto step = step_in(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

std::string CheckpointFolder::file_of(std::uint64_t step) const {
  return path_ + "/" + std::string(kPrefix) + step_name(step) + std::string(kSuffix);
}

void CheckpointFolder::remove_partial() const {
  for (const std::string& name : names_in(path_)) {
    if (name.starts_with(kPrefix) && name.ends_with(kPartial)) ::unlink((path_ + "/" + name).c_str());
  }
}

Status CheckpointFolder::install(const std::string& partial, const std::string& file) const {
  if (::rename(partial.c_str(), file.c_str()) == 0) {
    const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = folder >= 0 && ::fsync(folder) == 0;
    const int error = errno;
    if (folder >= 0) ::close(folder);
    if (synced) return success();
    return Error{Error::Kind::System, std::string("cannot bring the folder to the disk: ") + std::strerror(error),
                 path_};
  }
  const Error error{Error::Kind::System, std::string("cannot rename to its final name: ") + std::strerror(errno),
                    partial};
  ::unlink(partial.c_str());
  return error;
}

Status CheckpointFolder::write(std::uint64_t step, std::span<const program::TensorToWrite> tensors,
                               const program::Metadata& metadata) const {
  const std::vector<std::uint64_t> older = steps();
  const std::string file = file_of(step);
  const std::string partial = file + ".partial";
  Status status = program::write_safetensors(partial, tensors, metadata);
  if (status) status = install(partial, file);
  if (!status) {
    Error error = status.error();
    error.message +=
        older.empty() ? "; there is no older checkpoint" : "; the last checkpoint is " + file_of(older.front());
    return error;
  }
  for (const std::uint64_t old : older) {
    if (old != step) ::unlink(file_of(old).c_str());
  }
  return success();
}

Result<program::SafetensorsFile> CheckpointFolder::open_newest() const {
  const std::vector<std::uint64_t> all = steps();
  if (all.empty()) {
    return Error{Error::Kind::NotFound, "no checkpoint to resume from; start without --resume in an empty folder",
                 path_};
  }
  auto newest = open_whole(file_of(all.front()));
  if (newest) return newest;
  Error error = newest.error();
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!open_whole(file_of(all[i]))) continue;
    error.message += "; " + file_of(all[i]) + " is whole: remove the damaged one to resume from it";
    return error;
  }
  error.message += "; there is no older checkpoint";
  return error;
}

}  // namespace ullage::dcgan
