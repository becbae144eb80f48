// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weight_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace ullage::read {
namespace {

bool has_no_elements(const WeightTensor& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

// a += b * c; false if that overflows.
bool add_product(std::int64_t& a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0;
  return !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, &a);
}

}  // namespace

std::uint64_t WeightTensor::elements() const {
  if (has_no_elements(*this)) return 0;  // whatever the other extents are
  std::uint64_t count = 1;
  for (const std::int64_t extent : shape) count *= std::uint64_t(extent);
  return count;
}

bool WeightTensor::is_contiguous() const {
  if (has_no_elements(*this)) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

void WeightTensor::copy_to(std::span<std::byte> out) const {
  ULLAGE_CHECK(out.size() == bytes().count, "a copy has as many bytes as the tensor");
  if (out.empty()) return;
  if (is_contiguous()) {
    std::memcpy(out.data(), data(), out.size());
    return;
  }
  const std::size_t size = size_of(dtype).count;
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t place = 0;  // of the element at `index`, in elements
  for (std::size_t written = 0; written < out.size(); written += size) {
    std::memcpy(out.data() + written, data() + std::size_t(place) * size, size);
    for (std::size_t i = shape.size(); i-- > 0;) {  // increments the index, as digits are counted up
      place += strides[i];
      if (++index[i] < shape[i]) break;
      place -= index[i] * strides[i];
      index[i] = 0;
    }
  }
}

std::string what_is_wrong(const WeightTensor& tensor) {
  if (tensor.shape.size() != tensor.strides.size()) {
    return fmt::format("{} extents, {} strides", tensor.shape.size(), tensor.strides.size());
  }
  const auto is_below_zero = [](std::int64_t number) { return number < 0; };
  if (std::any_of(tensor.shape.begin(), tensor.shape.end(), is_below_zero)) {
    return fmt::format("an extent of shape {} is below zero", to_string(tensor.shape));
  }
  if (std::any_of(tensor.strides.begin(), tensor.strides.end(), is_below_zero)) {
    return fmt::format("one of the strides {} is below zero", to_string(tensor.strides));
  }
  const std::uint64_t held = tensor.storage.size() / size_of(tensor.dtype).count;
  if (tensor.offset > held) return fmt::format("begins at element {}, the storage has {}", tensor.offset, held);
  if (has_no_elements(tensor)) return "";
  auto bytes = std::int64_t(size_of(tensor.dtype).count);
  auto last = std::int64_t(tensor.offset);  // place of the last element
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (__builtin_mul_overflow(bytes, tensor.shape[i], &bytes)) {
      return fmt::format("shape {} passes 2^63 bytes", to_string(tensor.shape));
    }
    if (!add_product(last, tensor.shape[i] - 1, tensor.strides[i])) {
      return fmt::format("shape {} with strides {} passes 2^63 elements", to_string(tensor.shape),
                         to_string(tensor.strides));
    }
  }
  if (std::uint64_t(last) < held) return "";
  return fmt::format("shape {} with strides {} from element {} needs {} elements, the storage has {}",
                     to_string(tensor.shape), to_string(tensor.strides), tensor.offset, std::uint64_t(last) + 1, held);
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    if (__builtin_mul_overflow(strides[i], std::max<std::int64_t>(shape[i], 1), &strides[i - 1])) strides[i - 1] = 0;
  }
  return strides;
}

std::string to_string(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace ullage::read
