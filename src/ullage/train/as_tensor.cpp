// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/as_tensor.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <span>

namespace ullage::train {
namespace {

at::ScalarType type_of(read::Dtype dtype) {
  switch (dtype) {
    case read::Dtype::Bool:
      return at::kBool;
    case read::Dtype::U8:
      return at::kByte;
    case read::Dtype::I8:
      return at::kChar;
    case read::Dtype::I16:
      return at::kShort;
    case read::Dtype::I32:
      return at::kInt;
    case read::Dtype::I64:
      return at::kLong;
    case read::Dtype::F16:
      return at::kHalf;
    case read::Dtype::BF16:
      return at::kBFloat16;
    case read::Dtype::F32:
      return at::kFloat;
    case read::Dtype::F64:
      return at::kDouble;
    case read::Dtype::U16:
      return at::kUInt16;
    case read::Dtype::U32:
      return at::kUInt32;
    case read::Dtype::U64:
      return at::kUInt64;
    case read::Dtype::F8E4M3:
      return at::kFloat8_e4m3fn;
    case read::Dtype::F8E5M2:
      return at::kFloat8_e5m2;
    case read::Dtype::C64:
      return at::kComplexFloat;
    case read::Dtype::C128:
      return at::kComplexDouble;
  }
  contract_broken("a type of the file reader", __FILE__, __LINE__);
}

}  // namespace

at::Tensor as_tensor(const std::shared_ptr<const read::Weights>& weights, std::string_view name) {
  const read::WeightTensor* found = weights->find(name);
  ULLAGE_CHECK(found != nullptr, "a tensor that the file has");
  const auto type = type_of(found->dtype);
  const std::uint64_t width = read::size_of(found->dtype).count;
  if (found->elements() == 0 || reinterpret_cast<std::uintptr_t>(found->data()) % width != 0) {
    at::Tensor copy = at::empty(found->shape, type);
    found->copy_to({static_cast<std::byte*>(copy.mutable_data_ptr()), found->bytes().count});
    return copy;
  }
  auto* const data = const_cast<std::byte*>(found->data());  // torch has no read-only tensors
  return at::from_blob(
      data, found->shape, found->strides, [weights](void*) {}, type);
}

}  // namespace ullage::train
