// SPDX-License-Identifier: Apache-2.0
#include "pulse/best_faces.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ullage::pulse {
namespace {

std::vector<double> figures_of(const at::Tensor& tensor) {
  const at::Tensor figures = tensor.to(at::kDouble).contiguous();
  const double* begin = figures.const_data_ptr<double>();
  return {begin, begin + figures.numel()};
}

}  // namespace

// Every step but the first runs the same ops, whichever faces improved. So a step's memory, and a plan for it, do not
// depend on the values.
void BestFaces::see(const Evaluation& seen, std::int64_t step) {
  const std::vector<double> distances = figures_of(seen.distance);
  const std::vector<double> totals = figures_of(seen.loss.total);
  const bool first = !images_.defined();
  const at::Tensor better = at::zeros({static_cast<std::int64_t>(faces_.size()), 1, 1, 1}, at::kBool);
  bool* const flags = better.mutable_data_ptr<bool>();
  for (std::size_t i = 0; i < faces_.size(); ++i) {
    BestFace& best = faces_[i];
    best.distance = std::min(best.distance, distances[i]);
    flags[i] = first || totals[i] < best.total;
    if (flags[i]) best.total = totals[i], best.step = step;
  }
  if (first) {
    images_ = seen.image.clone();
    lows_ = seen.low.clone();
  } else {
    images_.copy_(at::where(better, seen.image, images_));
    lows_.copy_(at::where(better, seen.low, lows_));
  }
}

BestFace BestFaces::of(std::size_t picture) const {
  BestFace best = faces_[picture];
  const auto row = static_cast<std::int64_t>(picture);
  best.image = images_.select(0, row);
  best.low = lows_.select(0, row);
  return best;
}

}  // namespace ullage::pulse
