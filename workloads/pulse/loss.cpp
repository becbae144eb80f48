// SPDX-License-Identifier: Apache-2.0
#include "pulse/loss.h"

#include <ATen/ATen.h>

namespace ullage::pulse {
namespace {

using at::Tensor;

Tensor l1(const Tensor& low, const Tensor& wanted, double eps) {
  return 10 * (low - wanted).abs().mean({1, 2, 3}).clamp_min(eps);
}

// Averages over all pairs, including i = j. Zero if there is only one latent.
Tensor geocross(const Tensor& w) {
  if (w.size(1) == 1) return at::zeros({w.size(0)}, w.options());
  const Tensor one = w.unsqueeze(2);
  const Tensor other = w.unsqueeze(1);
  const Tensor apart = ((one - other).pow(2).sum(-1) + 1e-9).sqrt();
  const Tensor together = ((one + other).pow(2).sum(-1) + 1e-9).sqrt();
  const Tensor angle = 2 * at::atan2(apart, together);
  return (512 * angle.pow(2)).mean({1, 2}) / 8;
}

}  // namespace

Tensor Loss::distance(const Tensor& low) const { return (low - wanted_).pow(2).mean({1, 2, 3}).clamp_min(eps_); }

Tensor Loss::term(Term term, const Tensor& w, const Tensor& low) const {
  switch (term) {
    case Term::L2:
      return distance(low);
    case Term::L1:
      return l1(low, wanted_, eps_);
    case Term::GeoCross:
      return geocross(w);
  }
  contract_broken("unknown Term", __FILE__, __LINE__);
}

LossFigures Loss::operator()(const Tensor& w, const Tensor& low) const {
  LossFigures figures;
  for (const LossPart& part : parts_) {
    Tensor& figure = figures.terms[part.term];
    if (!figure.defined()) figure = term(part.term, w, low);
    const Tensor weighted = part.weight * figure;
    figures.total = figures.total.defined() ? figures.total + weighted : weighted;
  }
  return figures;
}

}  // namespace ullage::pulse
