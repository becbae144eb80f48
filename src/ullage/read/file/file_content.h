// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file's bytes without a copy: the file is mapped. Pipes, standard input and files without a size, such as those of
// /proc, are read into memory instead.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::read {

class FileContent final {
 public:
  // Opens a file, or standard input for "-". NotFound: there is no such file. BadFile: `path` is a folder, or a source
  // that is read rather than mapped gives more than `most_from_pipe`. System: the operating system refused.
  static Result<FileContent> open(const std::string& path, Bytes most_from_pipe = Bytes{2} * (1ull << 30));

  FileContent(FileContent&& other) noexcept;
  FileContent& operator=(FileContent&& other) noexcept;
  ~FileContent();

  // Valid while this object lives. The file must not be truncated meanwhile: the kernel ends a process that reads a
  // mapping beyond the file's end. That is acceptable because logs and recordings only grow.
  std::span<const std::byte> bytes() const;
  // Evicts the pages of `part`, so that they no longer count as resident bytes of this process. The next access reads
  // them from the file again. Has no effect if the content was read rather than mapped.
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
