// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loss of PULSE. Every term is one number per picture, and the pictures of a batch do not influence each other.
//
//   L2        max(mean over C,H,W of (D(image) - wanted)^2, eps)
//   L1        10 max(mean over C,H,W of |D(image) - wanted|, eps)
//   GEOCROSS  mean over i,j of 512 d_ij^2 / 8, d_ij = 2 atan2(sqrt(|w_i-w_j|^2 + 1e-9), sqrt(|w_i+w_j|^2 + 1e-9))

#include "pulse/loss_grammar.h"
#include "ullage/runtime/ops/torch_compat.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

namespace ullage::pulse {

struct LossFigures {
  at::Tensor total;                  // (B)
  std::map<Term, at::Tensor> terms;  // the terms in the loss, not weighted; (B) each
};

class Loss final {
 public:
  // `wanted`: (B, 3, s, s).
  Loss(std::vector<LossPart> parts, at::Tensor wanted, double eps)
      : parts_(std::move(parts)), wanted_(std::move(wanted)), eps_(eps) {}

  // w: (B, L, 512), low: (B, 3, s, s).
  LossFigures operator()(const at::Tensor& w, const at::Tensor& low) const;
  // Returns the L2 term, even if the loss does not contain it.
  at::Tensor distance(const at::Tensor& low) const;

 private:
  at::Tensor term(Term term, const at::Tensor& w, const at::Tensor& low) const;

  std::vector<LossPart> parts_;
  at::Tensor wanted_;
  double eps_;
};

}  // namespace ullage::pulse
