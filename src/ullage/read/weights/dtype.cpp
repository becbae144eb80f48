// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/dtype.h"

#include <algorithm>
#include <iterator>

namespace ullage::read {
namespace {

// Sources: torch/storage.py and c10/core/ScalarType.h; the `safetensors` crate's tensor.rs. Types newer than torch's
// typed storages have no storage class.
struct Row {
  std::string_view name, torch, storage;
  std::uint64_t bytes;
};
constexpr Row kRows[] = {
    {"BOOL", "bool", "BoolStorage", 1},
    {"U8", "uint8", "ByteStorage", 1},
    {"I8", "int8", "CharStorage", 1},
    {"U16", "uint16", "", 2},
    {"I16", "int16", "ShortStorage", 2},
    {"U32", "uint32", "", 4},
    {"I32", "int32", "IntStorage", 4},
    {"U64", "uint64", "", 8},
    {"I64", "int64", "LongStorage", 8},
    {"F8_E4M3", "float8_e4m3fn", "", 1},
    {"F8_E5M2", "float8_e5m2", "", 1},
    {"F16", "float16", "HalfStorage", 2},
    {"BF16", "bfloat16", "BFloat16Storage", 2},
    {"F32", "float32", "FloatStorage", 4},
    {"F64", "float64", "DoubleStorage", 8},
    {"C64", "complex64", "ComplexFloatStorage", 8},
    {"C128", "complex128", "ComplexDoubleStorage", 16},
};
static_assert(std::size(kRows) == std::size_t(Dtype::C128) + 1, "a row for each Dtype, in its order");

std::optional<Dtype> find(std::string_view Row::*column, std::string_view word) {
  if (word.empty()) return std::nullopt;
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& one) { return one.*column == word; });
  if (row == std::end(kRows)) return std::nullopt;
  return Dtype(row - std::begin(kRows));
}

}  // namespace

Bytes size_of(Dtype dtype) { return {kRows[std::size_t(dtype)].bytes}; }
std::string_view name_of(Dtype dtype) { return kRows[std::size_t(dtype)].name; }
std::string_view torch_name(Dtype dtype) { return kRows[std::size_t(dtype)].torch; }
std::optional<Dtype> dtype_named(std::string_view name) { return find(&Row::name, name); }
std::optional<Dtype> dtype_of_torch(std::string_view name) { return find(&Row::torch, name); }
std::optional<Dtype> dtype_of_storage(std::string_view class_name) { return find(&Row::storage, class_name); }

}  // namespace ullage::read
