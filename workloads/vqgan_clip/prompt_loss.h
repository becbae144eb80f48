// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far pictures are from a prompt, whatever it was: a text (one row), a picture (a row for each of its cutouts), a
// direction drawn by chance.

#include "ullage/runtime/ops/torch_compat.h"
#include "vqgan_clip/options.h"

#include <ATen/core/Tensor.h>

namespace ullage::vqgan_clip {

class PromptLoss final {
 public:
  // `wanted` (P,D), vectors of CLIP.
  PromptLoss(at::Tensor wanted, double weight, double stop);

  // Of features (N,D): |weight| * mean over N and P of sign(weight) * 2 asin(|a - e| / 2)^2, a and e of length 1. Below
  // `stop` it counts still but pulls no more.
  at::Tensor operator()(const at::Tensor& features) const;

 private:
  at::Tensor wanted_;
  double weight_, stop_;
};

// N(0,1) of `width` figures from a generator of its own.
PromptLoss loss_of_noise(const NoisePrompt& prompt, std::int64_t width, at::ScalarType type);

}  // namespace ullage::vqgan_clip
