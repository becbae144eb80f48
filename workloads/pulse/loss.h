// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loss of PULSE. Every term is one number per picture, and the pictures of a batch do not influence each other. A
// new term gets its name in loss_grammar.h and its formula here.
//
//   L2        max(mean over C,H,W of (low - wanted)^2, eps)
//   L1        10 * max(mean over C,H,W of |low - wanted|, eps)
//   GEOCROSS  mean over all pairs i,j (also i = j) of 512 d_ij^2 / 8,
//             d_ij = 2 atan2(sqrt(|w_i-w_j|^2 + 1e-9), sqrt(|w_i+w_j|^2 + 1e-9))
//
// low is D(image), the searched face downscaled (search.h). w_i is the latent of layer i. Constants as published.

#include "pulse/loss_grammar.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace ullage::pulse {

struct LossFigures {
  at::Tensor total;                  // (B)
  std::map<Term, at::Tensor> terms;  // those that the loss contains, without their weights; (B) each
};

class Loss final {
 public:
  // `wanted`: (B, 3, s, s).
  Loss(std::vector<LossPart> parts, at::Tensor wanted, double eps)
      : parts_(std::move(parts)), wanted_(std::move(wanted)), eps_(eps) {}

  // w: (B, L, 512), the latents of L layers. low: (B, 3, s, s).
  LossFigures operator()(const at::Tensor& w, const at::Tensor& low) const;
  // Returns the L2 term, as above, even if the loss does not contain it.
  at::Tensor distance(const at::Tensor& low) const;

 private:
  at::Tensor term(Term term, const at::Tensor& w, const at::Tensor& low) const;

  std::vector<LossPart> parts_;
  at::Tensor wanted_;
  double eps_;
};

}  // namespace ullage::pulse
