// SPDX-License-Identifier: Apache-2.0
#pragma once

// Colour and sharpness of pictures (N,3,H,W) of 0..1, as kornia 0.5.4 changes them, each by a figure of its own (N).
// The figures are float32 as drawn; what comes out has the dtype of the pictures.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

at::Tensor change_brightness(const at::Tensor& pictures, const at::Tensor& factors);  // factor - 1 is added
at::Tensor change_contrast(const at::Tensor& pictures, const at::Tensor& factors);
at::Tensor change_saturation(const at::Tensor& pictures, const at::Tensor& factors);
at::Tensor turn_hue(const at::Tensor& pictures, const at::Tensor& turns);  // of the whole circle

// From a picture blurred by [1 1 1; 1 5 1; 1 1 1] / 13, all but its rim, `factor` of the way to the picture itself.
at::Tensor sharpen(const at::Tensor& pictures, const at::Tensor& factors);

}  // namespace ullage::vqgan_clip
