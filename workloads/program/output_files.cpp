// SPDX-License-Identifier: Apache-2.0
#include "program/output_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace ullage::program {

namespace fs = std::filesystem;

Error cannot_write(const std::string& path, int error) {
  return {Error::Kind::System, std::string("cannot write: ") + std::strerror(error), path};
}

Status make_writable(const std::string& folder) {
  const auto failed = [&](const std::string& why) {
    return Error{Error::Kind::BadArgument, "cannot write there: " + why + "; choose another --out", folder};
  };
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return failed(code.message());
  const std::string probe = folder + "/.ullage-" + std::to_string(::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return failed(std::strerror(errno));
  ::close(fd);
  ::unlink(probe.c_str());
  return success();
}

Status write_whole_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return cannot_write(fresh, errno);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  const bool written = done == text.size() && ::fsync(fd) == 0;
  const int write_error = errno;
  ::close(fd);
  if (written && ::rename(fresh.c_str(), path.c_str()) == 0) return success();
  const int error = written ? errno : write_error;
  ::unlink(fresh.c_str());
  return cannot_write(path, error);
}

}  // namespace ullage::program
