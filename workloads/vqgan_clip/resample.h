// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resizes pictures as VQGAN-CLIP does for its square cutouts.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::vqgan_clip {

// Maps (N,C,H,W) to (N,C,side,side): a Lanczos filter along each axis that shrinks (reflected at the rim), then bicubic
// with aligned corners. Half the filter, about 2 * H / side pixels, must be less than H; for squares it is.
at::Tensor resample(const at::Tensor& pictures, std::int64_t side);

}  // namespace ullage::vqgan_clip
