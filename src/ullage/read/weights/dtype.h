// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types of a tensor's elements, with their names in safetensors and in torch.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage::read {

enum class Dtype : std::uint8_t {
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F8E4M3,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64,
  C64,
  C128
};

Bytes size_of(Dtype dtype);                // bytes of one element
std::string_view name_of(Dtype dtype);     // "F32", as safetensors has it
std::string_view torch_name(Dtype dtype);  // "float32"

// None for an unknown name.
std::optional<Dtype> dtype_named(std::string_view name);             // "F32"
std::optional<Dtype> dtype_of_torch(std::string_view torch_name);    // "float32"
std::optional<Dtype> dtype_of_storage(std::string_view class_name);  // "FloatStorage"

}  // namespace ullage::read
