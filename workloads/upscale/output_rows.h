// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns what comes out of the network into bytes of a PNG.

#include "image/png_rows.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::upscale {

// Returns (h,W,C) bytes, rounded to the nearest; C is the number of channels of `colour`. `rows`: (1,3,h,W) of about
// 0..1; what lies outside is clamped. A grey picture is the luma of what the network makes of it (0.299 R + 0.587 G +
// 0.114 B). `alpha`: what the network made of the alpha channel, of the same shape; its luma is the alpha of the
// result. If it is undefined, all pixels are opaque.
at::Tensor bytes_of_rows(const at::Tensor& rows, const at::Tensor& alpha, image::PngColour colour);

}  // namespace ullage::upscale
