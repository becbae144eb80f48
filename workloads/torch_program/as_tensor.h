// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor of a file of weights as a tensor of torch.

#include "ullage/read/weights/weights.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

namespace ullage::torch_program {

// The tensor of that name, which the file has; ContractError otherwise. It lies where it lies in the mapping, which
// stays as long as the tensor: to be read, never written. One that lies at no multiple of its element's size is copied.
// ContractError for unsigned integers of more than 8 bits, floats of 8, complex numbers.
at::Tensor as_tensor(const std::shared_ptr<const read::Weights>& weights, std::string_view name);

}  // namespace ullage::torch_program
