// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file read from front to back through one small buffer. It remembers whether its reader wanted more bytes than there
// were; that distinguishes a file that is cut short from a damaged one.

#include "ullage/base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ullage::image {

class InputFile final {
 public:
  // Errors: NotFound, BadFile (not a regular file: a folder, a pipe), System. Never blocks on a pipe that has no
  // writer.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }

  // Returns the bytes that follow, at most one buffer, without consuming them; empty at the end of the file.
  std::span<const std::uint8_t> peek() noexcept;
  // Consumes and returns the bytes that follow; they are valid until the next call. At the end of the file returns none
  // and sets ran_out().
  std::span<const std::uint8_t> next() noexcept;
  // Returns false and sets ran_out() if fewer than `count` bytes are left.
  bool read(std::uint8_t* to, std::size_t count) noexcept;

  bool ran_out() const { return ran_out_; }
  int read_errno() const { return read_errno_; }  // 0, or the errno that stopped reading before the end

 private:
  using Buffer = std::array<std::uint8_t, std::size_t{64} * 1024>;
  InputFile(int fd, std::string path);
  void fill() noexcept;

  int fd_;
  std::string path_;
  std::unique_ptr<Buffer> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the part of the buffer that is not consumed
  bool ran_out_ = false;
  int read_errno_ = 0;
};

}  // namespace ullage::image
