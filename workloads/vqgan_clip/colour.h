// SPDX-License-Identifier: Apache-2.0
#pragma once

// Changes colour and sharpness of pictures (N,3,H,W) of 0..1, as in kornia 0.5.4. Each picture has its own number (N).
// The numbers are float32 as drawn; results have the dtype of the pictures.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

at::Tensor change_brightness(const at::Tensor& pictures, const at::Tensor& factors);  // adds factor - 1
at::Tensor change_contrast(const at::Tensor& pictures, const at::Tensor& factors);
at::Tensor change_saturation(const at::Tensor& pictures, const at::Tensor& factors);
at::Tensor turn_hue(const at::Tensor& pictures, const at::Tensor& turns);  // in turns of the whole circle

// Blurs all but the rim by [1 1 1; 1 5 1; 1 1 1] / 13, then goes `factor` of the way from the blurred picture to the
// picture itself.
at::Tensor sharpen(const at::Tensor& pictures, const at::Tensor& factors);

}  // namespace ullage::vqgan_clip
