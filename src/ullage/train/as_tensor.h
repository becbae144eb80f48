// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a tensor of torch that uses the bytes of a tensor in a file of weights, without a copy where that is possible.

#include "ullage/read/weights/weights.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

namespace ullage::train {

// Returns the tensor called `name`; ContractError if the file has none. It shares the file's mapping, which it keeps
// alive, and must never be written. It is copied instead if its address is no multiple of its element's size, or if it
// has no elements. ContractError for unsigned integers of more than 8 bits, floats of 8 bits, and complex numbers.
at::Tensor as_tensor(const std::shared_ptr<const read::Weights>& weights, std::string_view name);

}  // namespace ullage::train
