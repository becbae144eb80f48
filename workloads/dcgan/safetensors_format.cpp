// SPDX-License-Identifier: Apache-2.0
#include "dcgan/safetensors_format.h"

namespace ullage::dcgan {

Bytes size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F32:
      return Bytes{4};
    case Dtype::I64:
      return Bytes{8};
    case Dtype::U8:
      return Bytes{1};
  }
  contract_broken("unknown Dtype", __FILE__, __LINE__);
}

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

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::F32:
      return "F32";
    case Dtype::I64:
      return "I64";
    case Dtype::U8:
      return "U8";
  }
  contract_broken("unknown Dtype", __FILE__, __LINE__);
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const Dtype dtype : {Dtype::F32, Dtype::I64, Dtype::U8}) {
    if (name_of(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::size_t digest_place(std::string_view header) {
  const std::size_t key = header.find(kDigestKey);
  if (key == std::string_view::npos) return std::string_view::npos;
  const std::size_t place = key + kDigestKey.size();
  return place + kDigestDigits <= header.size() ? place : std::string_view::npos;
}

}  // namespace ullage::dcgan
