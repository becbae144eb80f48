// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a file, mapped and never copied: libraries of torch have hundreds of megabytes, of which a reader looks
// at few.

#include "ullage/base/result.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::drycard {

class MappedFile final {
 public:
  // NotFound: there is no such file. BadFile: a folder, a pipe, an empty file. System: the operating system refused.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid as long as this lives and nobody makes the file shorter: then the kernel ends a process that looks there.
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(begin_), size_}; }

 private:
  MappedFile() = default;

  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ullage::drycard
