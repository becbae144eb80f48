// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes a tensor of torch from a tensor in a file of weights. The tensor uses the file's bytes without a copy where
// that is possible.

#include "ullage/read/weights/weights.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

namespace ullage::train {

// Returns the tensor called `name`; ContractError if the file has none. The tensor shares the file's bytes and keeps
// the file open; it must never be written. If the bytes' address is no multiple of an element's size, or if there are
// no elements, the tensor is a copy.
at::Tensor as_tensor(const std::shared_ptr<const read::Weights>& weights, std::string_view name);

}  // namespace ullage::train
