// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/report_file.h"

#include "ullage/base/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ullage::cli {

namespace fs = std::filesystem;

namespace {

// The most links that Linux follows in one path.
constexpr int kMostLinks = 40;

// The file that a link leads to, for one that is not there yet.
fs::path behind_links(fs::path path) {
  std::error_code failed;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(path, failed)); ++links) {
    path = path.parent_path() / fs::read_symlink(path, failed);  // an absolute one takes the place of the folder
  }
  return fs::absolute(path, failed);
}

}  // namespace

Result<ReportFile> ReportFile::prepare(const fs::path& path, const std::string& what, const std::string& option) {
  if (path.empty()) return Error{Error::Kind::BadArgument, what + " needs a file name", option};
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  // Renaming a file over /dev/null would remove that device for the whole machine.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Error{Error::Kind::BadArgument, what + " must be a file, this is a folder or a device", path.string()};
  }
  // If the path is a symbolic link, the link stays. canonical() also follows links in `folder/..`; it needs a file.
  const fs::path target = fs::exists(status) ? fs::canonical(path, failed) : behind_links(path);
  const ReportFile file(target.empty() ? path : target.lexically_normal(), what);
  const std::string fresh = name_before(file.path_.string());
  const int fd = ::open(fresh.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return Error{Error::Kind::BadArgument, what + " cannot be written: " + std::strerror(errno), path.string()};
  }
  ::close(fd);
  ::unlink(fresh.c_str());
  return file;
}

Status ReportFile::write(const Writer& writer) const {
  bool its_own = false;  // the writer failed, not the file
  Status written = replace_file(path_.string(), [&](std::ostream& out) {
    Status done = writer(out);
    its_own = !done;
    return done;
  });
  if (written || its_own) return written;
  return Error{written.error().kind, what_ + " " + written.error().message, written.error().where};
}

Status ReportFile::write(const report::RunReport& report) const {
  return write([&](std::ostream& out) {
    report::write_json(report, out);
    return success();
  });
}

}  // namespace ullage::cli
