// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file's bytes without a copy: mapped, not read. What cannot be mapped (a pipe, standard input, files of /proc) is
// read.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::read {

class FileContent final {
 public:
  // Standard input for "-". NotFound: there is no such file. BadFile: a folder, or more than `most` from a pipe.
  // System: the operating system refused.
  static Result<FileContent> open(const std::string& path, Bytes most_from_pipe = Bytes{2} * (1ull << 30));

  FileContent(FileContent&& other) noexcept;
  FileContent& operator=(FileContent&& other) noexcept;
  ~FileContent();

  // Valid as long as this lives and the file is not made shorter: a mapping has no bytes where the file has none, and
  // the kernel ends a process that looks there. Logs and recordings only grow.
  std::span<const std::byte> bytes() const;
  // The pages of that part of it stop counting as this process's; they come back when they are looked at.
  void let_go(std::span<const std::byte> part) const;

 private:
  FileContent() = default;
  static Result<FileContent> map(int file, std::size_t size, const std::string& path);
  static Result<FileContent> read_all(int file, const std::string& path, Bytes most);

  void* mapped_ = nullptr;
  std::size_t mapped_size_ = 0;
  std::string read_;
};

}  // namespace ullage::read
