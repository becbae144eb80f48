// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and checks the header of a safetensors file: names, types, shapes and places of all tensors.
//
//   8 bytes: length N of the header, little endian | N bytes of JSON | the tensors' bytes, one after the other
//
// https://github.com/huggingface/safetensors, "Format".

#include "ullage/base/result.h"
#include "ullage/read/weights/dtype.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::read {

struct SafetensorsHeader {
  struct Entry {
    std::string name;
    Dtype dtype = Dtype::F32;
    std::vector<std::int64_t> shape;  // empty: one value
    std::uint64_t begin = 0;          // [begin, end) in the file
    std::uint64_t end = 0;
  };
  std::vector<Entry> tensors;                   // sorted by name
  std::map<std::string, std::string> metadata;  // of __metadata__
};

inline constexpr std::uint64_t kSafetensorsLength = 8;  // bytes before the header

// BadFile if a header of `length` bytes does not fit into the file, or is longer than the format's own reader allows.
Status check_safetensors_length(std::uint64_t length, std::uint64_t file_size, const std::string& name);

// `json` is the header's N bytes. BadFile with `name:offset` if it is malformed, or if the tensors' ranges have holes,
// overlap, or do not end where the file does.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t file_size,
                                                   const std::string& name);

}  // namespace ullage::read
