// SPDX-License-Identifier: Apache-2.0
#pragma once

// A new folder among the temporary ones, removed with all that is in it.

#include "ullage/base/result.h"

#include <filesystem>
#include <utility>

namespace ullage::cli {

class ScratchFolder final {
 public:
  // In TMPDIR, else /tmp. System: it cannot be made.
  static Result<ScratchFolder> make();

  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace ullage::cli
