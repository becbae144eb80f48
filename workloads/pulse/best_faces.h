// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps, for each picture of the batch, the best face of a search and the least distance of any step.

#include "pulse/search.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace ullage::pulse {

struct BestFace {
  at::Tensor image;  // (3, R, R), of the step with the least total
  at::Tensor low;    // (3, s, s), D(image)
  double total = std::numeric_limits<double>::infinity();
  double distance = std::numeric_limits<double>::infinity();  // the least L2 of all steps
  std::int64_t step = 0;                                      // the step of `image`, counted from 0
};

class BestFaces final {
 public:
  // `eps` must be rounded to the type of the losses: then an L2, which is clamped to it, is never below it.
  BestFaces(std::int64_t batch, double eps) : faces_(static_cast<std::size_t>(batch)), eps_(eps) {}

  void see(const Evaluation& seen, std::int64_t step);

  BestFace of(std::size_t picture) const;
  // Returns true if some step reached eps.
  bool found(std::size_t picture) const { return faces_[picture].distance <= eps_; }

 private:
  std::vector<BestFace> faces_;  // their pictures are rows of the two tensors below
  at::Tensor images_, lows_;
  double eps_;
};

}  // namespace ullage::pulse
