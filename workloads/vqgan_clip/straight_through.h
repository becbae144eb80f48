// SPDX-License-Identifier: Apache-2.0
#pragma once

// Functions whose gradient is not that of what they compute.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

// `shown`, with the gradient of `followed`: passed on to it as it is, summed to its shape.
at::Tensor replace_grad(const at::Tensor& shown, const at::Tensor& followed);

// x between `low` and `high`; its gradient is kept back where following it would lead further outside.
at::Tensor clamp_with_grad(const at::Tensor& x, double low, double high);

}  // namespace ullage::vqgan_clip
