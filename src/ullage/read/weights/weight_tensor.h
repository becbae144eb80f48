// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor as it lies in a file of weights: a view of bytes that somebody else holds.
//
//   storage   [ . . . . | element element element . . . ]      shape, strides: how its elements are told apart
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
  std::vector<std::int64_t> strides;   // in elements, one for each extent; never below zero
  std::uint64_t offset = 0;            // in elements from the begin of the storage
  std::span<const std::byte> storage;  // tensors that share a storage have the same one

  std::uint64_t elements() const;
  Bytes bytes() const { return size_of(dtype) * elements(); }  // of its elements; a view may lie in fewer or among more
  // The first element. Files do not align: a float may lie at any address, so copy it, or have a copy made.
  const std::byte* data() const { return storage.data() + offset * size_of(dtype).count; }
  bool is_contiguous() const;  // the elements lie side by side, the last extent's first, as copy_to() writes them
  void copy_to(std::span<std::byte> out) const;  // `out` has bytes()
};

// Why such a tensor cannot be: an extent below zero, more bytes than 2^63, an element that is not in the storage. Empty
// when all is well. Everything above may be called for such a tensor alone.
std::string what_is_wrong(const WeightTensor& tensor);

// Strides of a contiguous tensor.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape);

// "[3, 4]".
std::string to_string(const std::vector<std::int64_t>& shape);

struct NamedWeight {
  std::string name;
  WeightTensor tensor;
};

}  // namespace ullage::read
