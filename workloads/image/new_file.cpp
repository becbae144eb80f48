// SPDX-License-Identifier: Apache-2.0
#include "image/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ullage::image {

NewFile::NewFile(const std::string& path) : path_(path) {
  for (int i = 0; i < 1000 && fd_ < 0; ++i) {
    new_path_ = path + ".new-" + std::to_string(getpid()) + "-" + std::to_string(i);
    fd_ = ::open(new_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  exists_ = fd_ >= 0;
  if (!exists_) errno_ = errno;
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (exists_) ::unlink(new_path_.c_str());
}

bool NewFile::write(const std::uint8_t* bytes, std::size_t count) noexcept {
  while (ok() && count > 0) {
    const ssize_t done = ::write(fd_, bytes, count);
    if (done >= 0) {
      bytes += done;
      count -= static_cast<std::size_t>(done);
    } else if (errno != EINTR) {
      errno_ = errno;
    }
  }
  return ok();
}

bool NewFile::keep() {
  // close() may be the first call to report that the disk is full.
  if (ok() && ::close(std::exchange(fd_, -1)) != 0) errno_ = errno;
  if (ok() && std::rename(new_path_.c_str(), path_.c_str()) != 0) errno_ = errno;
  if (ok()) exists_ = false;
  return ok();
}

Error NewFile::error() const {
  return {
      Error::Kind::System,
      std::string("cannot be written (") + std::strerror(errno_) + "); check the folder, its permissions and its space",
      path_};
}

}  // namespace ullage::image
