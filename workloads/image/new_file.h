// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that is written beside its final name and renamed when it is whole. So no reader sees half a picture, and an
// old picture survives a full disk.

#include "ullage/base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ullage::image {

// keep() renames the file to `path`. If keep() was not called, the destructor removes the file.
class NewFile final {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // All three return false from the first error on.
  bool ok() const { return errno_ == 0; }
  bool write(const std::uint8_t* bytes, std::size_t count) noexcept;
  bool keep();

  Error error() const;  // System, with `path` and the reason

 private:
  std::string path_, new_path_;
  int fd_ = -1;
  int errno_ = 0;
  bool exists_ = false;  // new_path_ is on the disk
};

}  // namespace ullage::image
