// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file read front to back through one small buffer. It remembers whether its reader wanted more than there was, which
// tells a file that is cut short from one that is damaged.

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
  // NotFound, BadFile (not a regular file: a folder, a pipe) or System. Never waits for a pipe's writer.
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }

  // The first bytes, at most one buffer; they are not consumed.
  std::span<const std::uint8_t> peek() noexcept;
  // The bytes that follow, valid until the next call; empty at the end of the file, and then ran_out().
  std::span<const std::uint8_t> next() noexcept;
  // False when there are fewer than `count`; then ran_out().
  bool read(std::uint8_t* to, std::size_t count) noexcept;

  bool ran_out() const { return ran_out_; }
  int read_errno() const { return read_errno_; }  // 0, or why reading stopped before the end of the file

 private:
  using Buffer = std::array<std::uint8_t, std::size_t{64} * 1024>;
  InputFile(int fd, std::string path);
  void fill() noexcept;

  int fd_;
  std::string path_;
  std::unique_ptr<Buffer> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what of the buffer is not consumed
  bool ran_out_ = false;
  int read_errno_ = 0;
};

}  // namespace ullage::image
