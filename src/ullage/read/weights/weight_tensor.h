// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor in a file of weights: a view of bytes that it does not own.
//
//   storage   [ . . . . | element element element . . . ]      shape and strides: where its elements are
//                       ^ offset

#include "ullage/base/bytes.h"
#include "ullage/read/weights/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ullage::read {

struct WeightTensor {
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;     // empty: one value
  std::vector<std::int64_t> strides;   // in elements, one for each extent; never negative
  std::uint64_t offset = 0;            // in elements, from the begin of the storage
  std::span<const std::byte> storage;  // tensors that share a storage have the same one

  std::uint64_t elements() const;
  // The bytes that copy_to() writes; the storage of a view may have fewer or more.
  Bytes bytes() const { return size_of(dtype) * elements(); }
  // Returns the place of the first element. It may be unaligned, because files do not align tensors. So copy the bytes,
  // or use copy_to().
  const std::byte* data() const { return storage.data() + offset * size_of(dtype).count; }
  bool is_contiguous() const;                    // elements side by side, the last index varying fastest
  void copy_to(std::span<std::byte> out) const;  // contiguous; `out` must have bytes() bytes
};

// Says why a tensor is impossible: another number of strides than of extents, a negative extent or stride, more than
// 2^63 bytes, an element outside the storage. Empty if the tensor is valid. The functions above may be called only for
// a valid tensor.
std::string what_is_wrong(const WeightTensor& tensor);

// Returns the strides of a contiguous tensor, in elements.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape);

// "[3, 4]".
std::string to_string(const std::vector<std::int64_t>& shape);

struct NamedWeight {
  std::string name;
  WeightTensor tensor;
};

}  // namespace ullage::read
