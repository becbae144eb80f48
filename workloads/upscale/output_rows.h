// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns what comes out of the network into bytes of a PNG.

#include "image/png_rows.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::upscale {

// Returns (h,W,C) bytes, rounded to the nearest: C as `colour` has it. `rows`: (1,3,h,W) of about 0..1. A grey picture
// is the luma of what the network makes of it (0.299 R + 0.587 G + 0.114 B). `alpha`: rows of the same size, whose luma
// is used; undefined: opaque.
at::Tensor bytes_of_rows(const at::Tensor& rows, const at::Tensor& alpha, image::PngColour colour);

}  // namespace ullage::upscale
