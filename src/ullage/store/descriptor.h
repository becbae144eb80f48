// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file descriptor that Ullage owns inside somebody else's program. Its number is high, because shells and scripts
// take the low ones for themselves. It remembers its file, because programs close descriptors that are not theirs
// (daemons close all). Another file that is opened later may then get the same number: close() and the destructor leave
// that file open.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ullage::store {

class Descriptor final {
 public:
  static constexpr int kLeast = 100;

  Descriptor() = default;
  // Takes `fd` over (below zero: none). Moves it to a number of kLeast or above and has it closed on exec. If the limit
  // on open files does not allow that, leaves it as it is.
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd_ < 0) return;
    if (const int high = ::fcntl(fd_, F_DUPFD_CLOEXEC, kLeast); high >= 0) {
      ::close(fd_);
      fd_ = high;
    }
    struct stat info = {};
    if (::fstat(fd_, &info) == 0) device_ = info.st_dev, inode_ = info.st_ino;
  }
  Descriptor(Descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), device_(other.device_), inode_(other.inode_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~Descriptor() { close(); }

  int number() const { return fd_; }

  // False if there is no descriptor, or if its number refers to another file by now.
  bool is_ours() const {
    struct stat info = {};
    return fd_ >= 0 && ::fstat(fd_, &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  }

  void close() {
    if (is_ours()) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace ullage::store
