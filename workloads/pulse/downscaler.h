// SPDX-License-Identifier: Apache-2.0
#pragma once

// D of PULSE: bicubic downscaling by a whole factor f, as a convolution. Its taps are k_i = cubic((i - 2f + 0.5) / f),
// i = 0 to 4f-1, cubic with a = -0.5, divided by their sum. Each side is padded by 3f reflected pixels in all, 3f/2 of
// them (rounded down) above or on the left. Rows come first, then columns; nothing is clamped or rounded.

#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ullage::pulse {

class Downscaler final {
 public:
  // `side` is at least 2 and divides `resolution`; ContractError otherwise.
  Downscaler(std::int64_t resolution, std::int64_t side, at::ScalarType type);

  // Maps (B, 3, resolution, resolution) to (B, 3, side, side).
  at::Tensor operator()(const at::Tensor& pictures) const;

 private:
  std::int64_t factor_;
  at::Tensor taps_;  // (3, 1, 4f)
};

}  // namespace ullage::pulse
