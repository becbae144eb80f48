// SPDX-License-Identifier: Apache-2.0
#pragma once

// D of PULSE: bicubic downscaling by a whole factor f, as a convolution. Taps k_i = cubic((i - 2f + 0.5) / f), i = 0 to
// 4f-1, cubic with a = -0.5, divided by their sum. Reflected 3f pixels in all, 3f/2 of them (rounded down) above and
// left; rows first, then columns; nothing is clamped or rounded.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::pulse {

class Downscaler final {
 public:
  // `side` from 2 up divides `resolution`; ContractError otherwise.
  Downscaler(std::int64_t resolution, std::int64_t side, at::ScalarType type);

  // (B, 3, resolution, resolution) to (B, 3, side, side).
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  std::int64_t factor_;
  at::Tensor taps_;  // (3, 1, 4f)
};

}  // namespace ullage::pulse
