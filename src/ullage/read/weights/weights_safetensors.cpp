// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/pickle/pickle_bytes.h"
#include "ullage/read/weights/safetensors_header.h"
#include "ullage/read/weights/weights_formats.h"

#include <fmt/format.h>

#include <utility>

namespace ullage::read {

// A length below 2^32, then a JSON object. No other format in use has a small number and then a brace there.
bool is_safetensors(std::span<const std::byte> content) {
  return content.size() > kSafetensorsLength && content[kSafetensorsLength] == std::byte{'{'} &&
         little_endian(content.data(), kSafetensorsLength) >> 32 == 0;
}

Result<std::vector<NamedWeight>> read_safetensors(std::span<const std::byte> content, const std::string& name) {
  const std::uint64_t length = little_endian(content.data(), kSafetensorsLength);
  ULLAGE_TRY(check_safetensors_length(length, content.size(), name));
  const std::string_view json(reinterpret_cast<const char*>(content.data()) + kSafetensorsLength, length);
  ULLAGE_TRY_VALUE(auto header, parse_safetensors_header(json, content.size(), name));
  std::vector<NamedWeight> tensors;
  for (auto& entry : header.tensors) {
    WeightTensor tensor;
    tensor.dtype = entry.dtype;
    tensor.strides = contiguous_strides(entry.shape);
    tensor.shape = std::move(entry.shape);
    tensor.storage = content.subspan(entry.begin, entry.end - entry.begin);
    if (const std::string wrong = what_is_wrong(tensor); !wrong.empty()) {
      return Error{Error::Kind::BadFile, fmt::format("damaged: {}: {}", entry.name, wrong),
                   fmt::format("{}:{}", name, entry.begin)};
    }
    tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return tensors;
}

}  // namespace ullage::read
