// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a file, mapped and not copied. Torch's libraries have hundreds of megabytes, of which a reader touches
// only a few.

#include "ullage/base/result.h"

#include <cstddef>
#include <span>
#include <string>

namespace ullage::drycard {

class MappedFile final {
 public:
  // NotFound if there is no such file. BadFile if it is no plain file (a folder, a pipe, a device) or is empty. System
  // if it cannot be opened or mapped for another reason, such as lack of permission.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid while this object, or the one that it was moved to, lives. Empty after a move. If somebody shortens the file,
  // an access past its end kills the process (SIGBUS).
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(begin_), size_}; }

 private:
  MappedFile() = default;

  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ullage::drycard
