// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file of `--report`: tried before the program starts, so that an hour of work is not followed by "permission
// denied"; written to a new name and renamed, so that it is the old report or the new one and never half of one.

#include "ullage/base/result.h"
#include "ullage/report/run_report.h"

#include <filesystem>
#include <string>

namespace ullage::cli {

class ReportFile final {
 public:
  // Tries to make and remove a file beside `path`. An existing report is left as it is.
  static Result<ReportFile> prepare(const std::filesystem::path& path);

  // Replaces the file. On failure the old one, if any, is untouched.
  Status write(const report::RunReport& report) const;

 private:
  explicit ReportFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path new_name() const;
  std::filesystem::path path_;
};

}  // namespace ullage::cli
