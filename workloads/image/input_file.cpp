// SPDX-License-Identifier: Apache-2.0
#include "image/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ullage::image {

Result<InputFile> InputFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int why = errno;
    const bool missing = why == ENOENT || why == ENOTDIR;
    return Error{missing ? Error::Kind::NotFound : Error::Kind::System,
                 missing ? "no such file; check the path"
                         : std::string("cannot be opened (") + std::strerror(why) + "); check its permissions",
                 path};
  }
  InputFile file(fd, path);
  struct stat about {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    return Error{Error::Kind::BadFile, "is not a regular file; name a PNG or JPEG", path};
  }
  return file;
}

InputFile::InputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)), buffer_(std::make_unique<Buffer>()) {}

InputFile::InputFile(InputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_),
      ran_out_(other.ran_out_),
      read_errno_(other.read_errno_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

// Refills an empty buffer.
void InputFile::fill() noexcept {
  begin_ = end_ = 0;
  while (end_ < buffer_->size()) {
    const ssize_t got = ::read(fd_, buffer_->data() + end_, buffer_->size() - end_);
    if (got > 0) {
      end_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return;
    } else if (errno != EINTR) {
      read_errno_ = errno;
      return;
    }
  }
}

std::span<const std::uint8_t> InputFile::peek() noexcept {
  if (begin_ == end_) fill();
  return {buffer_->data() + begin_, end_ - begin_};
}

std::span<const std::uint8_t> InputFile::next() noexcept {
  const auto bytes = peek();
  begin_ = end_;
  ran_out_ = ran_out_ || bytes.empty();
  return bytes;
}

bool InputFile::read(std::uint8_t* to, std::size_t count) noexcept {
  while (count > 0) {
    const auto bytes = peek();
    if (bytes.empty()) {
      ran_out_ = true;
      return false;
    }
    const std::size_t part = std::min(count, bytes.size());
    std::memcpy(to, bytes.data(), part);
    begin_ += part;
    to += part;
    count -= part;
  }
  return true;
}

}  // namespace ullage::image
