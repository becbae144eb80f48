// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is asked for (`--report`, `--html`, `--convert`): tried before the work starts, so that an hour of it is
// not followed by "permission denied"; written to a new name and renamed, so that it is the old file or the new one and
// never half of one.

#include "ullage/base/result.h"
#include "ullage/report/run_report.h"

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

namespace ullage::cli {

class ReportFile final {
 public:
  using Writer = std::function<Status(std::ostream&)>;

  // Tries to make and remove a file beside `path`. An existing file is left as it is. Errors speak of `what`.
  static Result<ReportFile> prepare(const std::filesystem::path& path, const std::string& what = "the report",
                                    const std::string& option = "--report");

  // Replaces the file. On failure, the writer's own included, the old one, if any, is untouched.
  Status write(const Writer& writer) const;
  Status write(const report::RunReport& report) const;

  // Without links; two that are equal are one file.
  const std::filesystem::path& path() const { return path_; }

 private:
  ReportFile(std::filesystem::path path, std::string what) : path_(std::move(path)), what_(std::move(what)) {}
  std::filesystem::path path_;
  std::string what_;
};

}  // namespace ullage::cli
