// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions with a gradient other than their own.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

// Returns `shown`, and passes its gradient to `followed` unchanged, summed to the shape of `followed`.
at::Tensor replace_grad(const at::Tensor& shown, const at::Tensor& followed);

// Clamps x to `low`..`high`. The gradient is zero for an element outside if following it would lead further outside.
at::Tensor clamp_with_grad(const at::Tensor& x, double low, double high);

}  // namespace ullage::vqgan_clip
