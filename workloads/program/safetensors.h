// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reading and writing of safetensors files, streamed: tensors go straight from and to their own memory, never mapped
// and never buffered whole, because the resident bytes of the process are budgeted.
//
// The format is described, and its header read, in ullage/read/weights/safetensors_header.h. Ours add one entry to
// __metadata__, "sha256": the SHA-256 of the whole file with that entry's 64 digits read as zeros, so that damage
// anywhere is found.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/read/weights/dtype.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ullage::program {

using read::Dtype;  // F32, I64 and U8 alone are read
using read::size_of;

struct TensorShape {
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> sizes;  // empty: one value

  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};
Bytes size_of(const TensorShape& shape);
std::string to_string(const TensorShape& shape);  // "F32 [100, 64, 4, 4]"

// A tensor to be written: contiguous memory of size_of(shape) bytes that outlives the call.
struct TensorToWrite {
  std::string name;
  TensorShape shape;
  const void* data = nullptr;
};

using Metadata = std::map<std::string, std::string>;

// Writes a new file at `path` (which is replaced) and brings it to the disk (fsync). On failure there is no file, and
// the error says what the system said and how many bytes were to be written. `metadata` may not hold "sha256".
Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors, const Metadata& metadata);

// An open file whose header is read and checked: names, types and shapes known, ranges without holes up to the file's
// end.
class SafetensorsFile final {
 public:
  struct Entry {
    TensorShape shape;
    std::uint64_t begin = 0;  // [begin, end) from the start of the file
    std::uint64_t end = 0;
  };

  // NotFound, or BadFile with what is wrong. The bytes of the tensors are not read.
  static Result<SafetensorsFile> open(const std::string& path);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  // Reads the whole file through a buffer of 1 MiB and compares its SHA-256 with the one stated in it.
  Status verify() const;

  // Reads a tensor into `out`, size_of(shape) bytes. The name must be one of entries().
  Status read(const std::string& name, void* out) const;

 private:
  SafetensorsFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status read_header();
  Status take_entries(const std::string& header, std::uint64_t file_size);
  Error bad(const std::string& what) const { return {Error::Kind::BadFile, what, path_}; }

  std::string path_;
  int fd_ = -1;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  Metadata metadata_;
};

}  // namespace ullage::program
