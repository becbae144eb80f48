// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that the person asked for (`--report`, `--html`, `--convert`). It is tried before the work starts, so that
// "permission denied" does not come after an hour of work. It is written under another name and then renamed, so that
// it is always the whole old file or the whole new one. Edit it to change how files of the verbs are tried or replaced.

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

  // Checks that the file can be written: creates and removes a file beside `path`. An existing file is left as it is.
  // BadArgument if it cannot be written, or if `path` is a folder or a device. Messages call the file `what`. If `path`
  // is empty, the error's place is `option`.
  static Result<ReportFile> prepare(const std::filesystem::path& path, const std::string& what = "the report",
                                    const std::string& option = "--report");

  // Replaces the file. If that or the writer fails, returns the error, and an existing file stays untouched.
  Status write(const Writer& writer) const;
  Status write(const report::RunReport& report) const;

  // The absolute path; if the file exists, symbolic links are resolved. Equal paths are one file.
  const std::filesystem::path& path() const { return path_; }

 private:
  ReportFile(std::filesystem::path path, std::string what) : path_(std::move(path)), what_(std::move(what)) {}
  std::filesystem::path path_;
  std::string what_;
};

}  // namespace ullage::cli
