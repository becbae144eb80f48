// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <string_view>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const fs::path& path, int reason) {
  return {Error::Kind::BadArgument, std::string("the report cannot be written: ") + std::strerror(reason),
          path.string()};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

fs::path ReportFile::new_name() const { return path_.string() + ".new-" + std::to_string(::getpid()); }

Result<ReportFile> ReportFile::prepare(const fs::path& path) {
  if (path.empty()) return Error{Error::Kind::BadArgument, "the report needs a file name", "--report"};
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  // Renaming over /dev/null would take the device away from the whole machine.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Error{Error::Kind::BadArgument, "the report must be a file, this is a folder or a device", path.string()};
  }
  // A link keeps its name and its target gets the report.
  const fs::path target = fs::exists(status) ? fs::canonical(path, failed) : fs::absolute(path, failed);
  const ReportFile file(target.empty() ? path : target);
  const int fd = ::open(file.new_name().c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return cannot_write(path, errno);
  ::close(fd);
  ::unlink(file.new_name().c_str());
  return file;
}

Status ReportFile::write(const report::RunReport& report) const {
  std::ostringstream text;
  report::write_json(report, text);
  const fs::path fresh = new_name();
  const int fd = ::open(fresh.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return cannot_write(path_, errno);
  bool good = write_all(fd, text.str());
  int reason = errno;
  if (::close(fd) != 0 && good) good = false, reason = errno;
  if (good && ::rename(fresh.c_str(), path_.c_str()) != 0) good = false, reason = errno;
  if (good) return success();
  ::unlink(fresh.c_str());
  return cannot_write(path_, reason);
}

}  // namespace ullage::cli
