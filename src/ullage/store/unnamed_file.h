// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file without a name on a disk, so that no bytes are left however the process ends. If the file system has no such
// files, the file gets a name that is removed before the first byte is written. Errors say in words what went wrong.
// Transfers bypass the page cache if the file system allows it, because cached copies would take the very memory
// that spilling is to free.

#include "ullage/base/result.h"
#include "ullage/store/descriptor.h"
#include "ullage/store/pages.h"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ullage::store {

// The system calls behind the file, so that tests can make each of them fail in turn.
struct SpillCalls {
  int (*open_unnamed)(const char* folder);  // below zero, with errno: it failed, or this file system has no such files
  int (*allocate)(int fd, int mode, off_t at, off_t size);  // fallocate
  ssize_t (*write)(int fd, const void* from, std::size_t size, off_t at);
  ssize_t (*read)(int fd, void* into, std::size_t size, off_t at);

  static SpillCalls system();
};

// Thread-safe. Offsets, sizes and addresses are multiples of 4096.
class UnnamedFile final {
 public:
  enum class Way { Write, Read };

  // Makes the file in `folder`. System: the folder refuses it.
  static Result<std::unique_ptr<UnnamedFile>> open(const std::string& folder, const SpillCalls& calls);
  UnnamedFile(std::string folder, const SpillCalls& calls, Descriptor file);  // use open() instead

  // Transfers all of the bytes, or returns an error. NotFound: the pages to write were taken away meanwhile. BadFile:
  // the file ends before the bytes to read do. System: the disk is full or refused, or the program closed the
  // descriptor.
  Status transfer(Way way, std::uint64_t offset, Address memory, Bytes size);

  // Asks the disk for blocks now. Returns 0, also if the file system makes no such promises. Otherwise returns errno,
  // and no blocks were taken.
  int promise_blocks(std::uint64_t offset, Bytes size);
  // Gives blocks back; the offsets then read as zeros. Returns 0 or errno.
  int give_back_blocks(std::uint64_t offset, Bytes size);

  // Is the disk or the user's quota full, or may the file not become longer?
  static bool is_full(int error);
  // Makes an error that says what could not be done, for how many bytes and why; if the disk is full, also what is
  // free.
  Error refusal(Way way, Bytes size, int error) const;
  Error error(Error::Kind kind, const std::string& message) const { return {kind, message, folder_}; }

  bool past_the_cache() const { return direct_.load(); }
  int descriptor() const { return file_.number(); }

 private:
  bool leave_direct();

  const std::string folder_;
  const SpillCalls calls_;
  Descriptor file_;
  std::atomic<bool> direct_{false};
};

}  // namespace ullage::store
