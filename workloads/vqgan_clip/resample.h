// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pictures made smaller or larger as VQGAN-CLIP makes its square cutouts.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::vqgan_clip {

// (N,C,H,W) to (N,C,side,side): a Lanczos filter along each axis that shrinks (reflected at the rim), then bicubic,
// corners aligned. Half the filter, about 2 * H / side pixels, must be less than H, as it is of squares.
at::Tensor resample(const at::Tensor& pictures, std::int64_t side);

}  // namespace ullage::vqgan_clip
