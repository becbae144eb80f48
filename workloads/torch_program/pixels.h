// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts between pictures of bytes and tensors.

#include "image/picture.h"
#include "image/png_text.h"
#include "ullage/base/result.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <span>
#include <string>

namespace ullage::torch_program {

// Returns (1, 3, height, width), with 0..255 mapped to 0..1.
at::Tensor to_tensor(const image::Picture& picture, at::ScalarType type);

// Converts one picture (3, height, width) of about 0..1. Clamps, then truncates instead of rounding, as the published
// program does.
image::Picture to_picture(const at::Tensor& tensor);

Status write_png(const std::string& path, const at::Tensor& tensor, std::span<const image::PngText> texts = {});

}  // namespace ullage::torch_program
