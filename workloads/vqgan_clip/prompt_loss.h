// SPDX-License-Identifier: Apache-2.0
#pragma once

// The distance of pictures from a prompt of any kind. A text has one row, a picture has a row for each of its cutouts,
// and a random direction has one row.

#include "ullage/runtime/ops/torch_compat.h"
#include "vqgan_clip/options.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

class PromptLoss final {
 public:
  // `wanted` (P,D) are vectors of CLIP.
  PromptLoss(at::Tensor wanted, double weight, double stop);

  // For features (N,D): |weight| * mean over N and P of sign(weight) * 2 asin(|a - e| / 2)^2, with a and e scaled to
  // length 1. A distance below `stop` still counts but has no gradient.
  at::Tensor operator()(const at::Tensor& features) const;

 private:
  at::Tensor wanted_;
  double weight_, stop_;
};

// Draws a direction N(0,1) of `width` numbers from its own generator, seeded by the prompt.
PromptLoss loss_of_noise(const NoisePrompt& prompt, std::int64_t width, at::ScalarType type);

}  // namespace ullage::vqgan_clip
