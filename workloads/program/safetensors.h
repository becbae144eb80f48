// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes safetensors files as streams. Tensors go directly from and to their own memory. Files are neither
// mapped nor buffered whole, because resident bytes are budgeted.
//
// ullage/read/weights/safetensors_header.h describes the format and parses the header. Our files add "sha256" to
// __metadata__: the SHA-256 of the whole file with that entry's 64 digits read as zeros. It reveals damage anywhere.

#include "ullage/base/bytes.h"
#include "ullage/base/result.h"
#include "ullage/read/weights/dtype.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ullage::program {

using read::Dtype;  // SafetensorsFile accepts only F32, I64 and U8
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

// Writes a new file at `path` and brings it to the disk (fsync). An old file there is lost, even on failure. So give
// the name of a new file, and rename that. On failure (System) no file is left, and the error gives the system's reason
// and the file's size. `metadata` must not hold "sha256" (ContractError).
Status write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors, const Metadata& metadata);

// An open file whose header was read and checked. Names, types and shapes are known, and the tensors' ranges reach to
// the end of the file without holes.
class SafetensorsFile final {
 public:
  struct Entry {
    TensorShape shape;
    std::uint64_t begin = 0;  // [begin, end) from the start of the file
    std::uint64_t end = 0;
  };

  // Errors: NotFound, System, or BadFile with what is wrong. Does not read the tensors' bytes.
  static Result<SafetensorsFile> open(const std::string& path);

  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  // Reads the whole file through a buffer of 1 MiB and compares its SHA-256 with the one stated in it. BadFile if they
  // differ or none is stated.
  Status verify() const;

  // Reads a tensor into `out`, size_of(shape) bytes. The name must be in entries() (ContractError).
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
