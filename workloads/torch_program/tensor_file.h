// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes tensors as a safetensors file.

#include "ullage/base/result.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace ullage::torch_program {

// Accepts floats, doubles, 64-bit integers and bytes, in any layout. Writes under another name and renames the file
// when it is whole.
Status write_tensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors);

}  // namespace ullage::torch_program
