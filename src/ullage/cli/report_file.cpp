// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const fs::path& path, const std::string& what, int reason) {
  return {Error::Kind::BadArgument, what + " cannot be written: " + std::strerror(reason), path.string()};
}

}  // namespace

fs::path ReportFile::new_name() const { return path_.string() + ".new-" + std::to_string(::getpid()); }

Error ReportFile::cannot_write(int reason) const { return cli::cannot_write(path_, what_, reason); }

Result<ReportFile> ReportFile::prepare(const fs::path& path, const std::string& what, const std::string& option) {
  if (path.empty()) return Error{Error::Kind::BadArgument, what + " needs a file name", option};
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  // Renaming over /dev/null would take the device away from the whole machine.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Error{Error::Kind::BadArgument, what + " must be a file, this is a folder or a device", path.string()};
  }
  // A link keeps its name and its target gets the report.
  const fs::path target = fs::exists(status) ? fs::canonical(path, failed) : fs::absolute(path, failed);
  const ReportFile file(target.empty() ? path : target.lexically_normal(), what);
  const int fd = ::open(file.new_name().c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return cli::cannot_write(path, what, errno);
  ::close(fd);
  ::unlink(file.new_name().c_str());
  return file;
}

Status ReportFile::write(const Writer& writer) const {
  const fs::path fresh = new_name();
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  if (!out) return cannot_write(errno);
  const Status written = writer(out);
  out.close();
  const bool good = written && out;
  if (good && ::rename(fresh.c_str(), path_.c_str()) == 0) return success();
  const int reason = errno;
  ::unlink(fresh.c_str());
  return written ? cannot_write(reason) : written;
}

Status ReportFile::write(const report::RunReport& report) const {
  return write([&](std::ostream& out) {
    report::write_json(report, out);
    return success();
  });
}

}  // namespace ullage::cli
