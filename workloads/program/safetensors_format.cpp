// SPDX-License-Identifier: Apache-2.0
#include "program/safetensors_format.h"

#include "program/safetensors.h"

namespace ullage::program {

Bytes size_of(const TensorShape& shape) {
  Bytes size = size_of(shape.dtype);
  for (const std::int64_t extent : shape.sizes) {
    ULLAGE_CHECK(extent >= 0, "an extent is below zero");
    size = size * static_cast<std::uint64_t>(extent);
  }
  return size;
}

std::string to_string(const TensorShape& shape) {
  std::string text(name_of(shape.dtype));
  text += " [";
  for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape.sizes[i]);
  }
  return text + "]";
}

std::size_t digest_place(std::string_view header) {
  const std::size_t key = header.find(kDigestKey);
  if (key == std::string_view::npos) return std::string_view::npos;
  const std::size_t place = key + kDigestKey.size();
  return place + kDigestDigits <= header.size() ? place : std::string_view::npos;
}

}  // namespace ullage::program
